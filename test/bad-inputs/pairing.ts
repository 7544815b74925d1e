import { credentialPath, challengePath, newMachineKeyPair, pairPath, tunnelPath } from "#shared/protocol/pairing.ts";
import { pairBodyBytesMax } from "../../services/gateway/tunnels/pair-machines.ts";
import type { Section } from "./row.ts";
import { postedJson, posted } from "./sent.ts";

const challenge = `${Date.now().toString(36)}.${"a".repeat(22)}.${"0".repeat(64)}`;
const { publicKey } = newMachineKeyPair();
const proof = "p".repeat(43);
const join = "abcDEF012345";
const whole = { join, public_key: publicKey, challenge, proof };
const { join: _, ...withoutJoin } = whole;
const at = { path: pairPath };
const asked = { public_key: publicKey, challenge, signature: "s".repeat(86), boot: "b".repeat(22) };
const atCredential = { path: credentialPath };
const toWebSocket = (method: string, ...headers: readonly string[]): string =>
  [`${method} ${tunnelPath} HTTP/1.1`, "Host: a", "Connection: Upgrade", "Upgrade: websocket", ...headers, "\r\n"].join(
    "\r\n",
  );
const handshake = ["Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`];

/** Strangers at the routes by which machines are paired. */
export const pairing: Section = {
  title: "machines that want to be paired",
  cases: [
    {
      rows: [175],
      what: "a GET of the route that pairs",
      sent: () => `GET ${pairPath} HTTP/1.1\r\nHost: a\r\n\r\n`,
      told: [{ status: 405, code: "method_not_allowed", headers: { allow: "POST" } }],
    },
    {
      rows: [175],
      what: "a POST for a challenge",
      sent: postedJson({}, { path: challengePath }),
      told: [{ status: 405, code: "method_not_allowed", headers: { allow: "GET, HEAD" } }],
    },
    {
      rows: [176],
      what: "a body that is no JSON",
      sent: posted("join abcDEF012345", at),
      told: [{ status: 400, code: null }],
    },
    {
      rows: [176],
      what: "no join line",
      sent: postedJson(withoutJoin, at),
      told: [{ status: 400, code: "missing_required_parameter", param: "join" }],
    },
    {
      rows: [176],
      what: "a number in place of a proof",
      sent: postedJson({ ...whole, proof: 7 }, at),
      told: [{ status: 400, code: "invalid_type", param: "proof" }],
    },
    {
      rows: [176],
      what: "the id of no join line",
      sent: postedJson({ ...whole, join: "../machines" }, at),
      told: [{ status: 400, code: "invalid_value", param: "join", saysNot: /\.\.\/machines/ }],
    },
    {
      rows: [176],
      what: "a public key with one wrong character",
      sent: postedJson({ ...whole, public_key: `${publicKey.slice(0, -1)}${publicKey.endsWith("A") ? "B" : "A"}` }, at),
      told: [{ status: 400, code: "invalid_value", param: "public_key" }],
    },
    {
      rows: [177],
      what: "a body that is too long",
      sent: postedJson({ ...whole, padding: "x".repeat(pairBodyBytesMax) }, at),
      told: [{ status: 413, code: "request_too_large", says: /1024 bytes \(pairBodyBytesMax\)/ }],
      afterwards: "closed",
    },
    {
      rows: [178],
      what: "a challenge that the site did not make",
      sent: postedJson(whole, at),
      told: [{ status: 403, code: "challenge_invalid", param: "challenge", says: /challengeMsMax/ }],
    },
    {
      rows: [182],
      what: "a tunnel that is asked for before the answer to an earlier request",
      sent: () => `GET ${challengePath} HTTP/1.1\r\nHost: a\r\n\r\n${toWebSocket("GET", ...handshake)}`,
      told: [{ status: 200 }, { status: 426, code: "upgrade_required" }],
    },
    {
      rows: [182],
      what: "a tunnel that is asked for with a body that never comes",
      sent: () => toWebSocket("GET", ...handshake, "Content-Length: 5"),
      told: [{ status: 400, code: "bad_request", says: /no body/ }],
      afterwards: "closed",
    },
    {
      rows: [182],
      what: "a tunnel that is asked for by a POST",
      sent: () => `${toWebSocket("POST", ...handshake, "Content-Length: 5")}12345`,
      told: [{ status: 405, code: "method_not_allowed", headers: { allow: "GET, HEAD" } }],
    },
    {
      rows: [183],
      what: "a GET of the route of credentials",
      sent: () => `GET ${credentialPath} HTTP/1.1\r\nHost: a\r\n\r\n`,
      told: [{ status: 405, code: "method_not_allowed", headers: { allow: "POST" } }],
    },
    {
      rows: [183],
      what: "an agent of an earlier version that asks for a direct connection to NATS",
      sent: postedJson(asked, atCredential),
      told: [{ status: 409, code: "direct_unavailable", says: /connects through a gateway/ }],
    },
    {
      rows: [184],
      what: "a request for a credential that is too long",
      sent: postedJson({ ...asked, padding: "x".repeat(pairBodyBytesMax) }, atCredential),
      told: [{ status: 413, code: "request_too_large", says: /1024 bytes \(pairBodyBytesMax\)/ }],
      afterwards: "closed",
    },
  ],
};
