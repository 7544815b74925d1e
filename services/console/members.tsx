import { render } from "preact";
import { followLinks } from "./address.ts";
import { clock } from "./live.ts";
import { MemberApp } from "./members/app.tsx";
import { openSession } from "./members/session.ts";
import { keepTheme } from "./theme.ts";

const root = document.getElementById("console");
if (root !== null) {
  keepTheme();
  followLinks();
  setInterval(() => (clock.value = Date.now()), 1_000);
  void openSession();
  root.replaceChildren();
  render(<MemberApp />, root);
}
