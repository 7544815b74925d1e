import { expect, test } from "vitest";
import { browserText } from "../../../services/console/session-words.ts";

test("a browser is named by its User-Agent with its system, and an unknown one as it names itself", () => {
  const mac =
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18 Safari/605";
  const edge = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 Chrome/131.0 Safari/537.36 Edg/131.0";
  const phone = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1 CriOS/131 Mobile Safari/604";
  expect([mac, edge, phone, "curl/8.5.0"].map(browserText)).toEqual([
    "Safari on macOS",
    "Edge on Windows",
    "Chrome on iOS",
    "curl/8.5.0",
  ]);
});
