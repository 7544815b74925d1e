import { render } from "preact";
import { followLinks } from "./address.ts";
import { App } from "./app.tsx";
import { openSession } from "./session.ts";
import { keepTheme } from "./theme.ts";

const root = document.getElementById("console");
if (root !== null) {
  keepTheme();
  followLinks();
  void openSession();
  root.replaceChildren();
  render(<App />, root);
}
