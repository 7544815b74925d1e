import { credentialPath, challengePath, newMachineKeyPair, pairPath, tunnelPath } from "#shared/protocol/pairing.ts";
import { pairBodyBytesMax } from "../../services/gateway/tunnels/pair-machines.ts";
import type { Elsewhere, Section } from "./row.ts";
import { postedJson, posted } from "./sent.ts";

const challenge = `${Date.now().toString(36)}.${"a".repeat(22)}.${"0".repeat(64)}`;
const { publicKey } = newMachineKeyPair();
const proof = "p".repeat(43);
const join = "abcDEF012345";
const whole = { join, public_key: publicKey, challenge, proof };
const { join: _, ...withoutJoin } = whole;
const at = { path: pairPath };
const asked = { public_key: publicKey, challenge, signature: "s".repeat(86), boot: "b".repeat(22) };
const { boot: _boot, ...withoutBoot } = asked;
const atCredential = { path: credentialPath };
const toWebSocket = (method: string, ...headers: readonly string[]): string =>
  [`${method} ${tunnelPath} HTTP/1.1`, "Host: a", "Connection: Upgrade", "Upgrade: websocket", ...headers, "\r\n"].join(
    "\r\n",
  );
const handshake = ["Sec-WebSocket-Version: 13", `Sec-WebSocket-Key: ${Buffer.alloc(16).toString("base64")}`];

const held = (row: number, file: string, ...names: readonly string[]): readonly Elsewhere[] =>
  names.map((name) => ({ rows: [row], file, name }));
const overCredentials = "bad-inputs/a-credential-goes-to-proven-machines-only";
const overHttp = "integration/machines-are-paired-over-http";

/** Strangers at the routes by which machines are paired. */
export const pairing: Section = {
  title: "machines that want to be paired",
  first: 175,
  last: 186,
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
      what: "a request for a credential that is no JSON",
      sent: posted("attic", atCredential),
      told: [{ status: 400, code: null }],
    },
    {
      rows: [183],
      what: "a request for a credential without a body",
      sent: posted("", atCredential),
      told: [{ status: 400, code: null }],
    },
    {
      rows: [183],
      what: "a request for a credential from no process",
      sent: postedJson(withoutBoot, atCredential),
      told: [{ status: 400, code: "missing_required_parameter", param: "boot" }],
    },
    {
      rows: [183],
      what: "a list in place of a signature",
      sent: postedJson({ ...asked, signature: [asked.signature] }, atCredential),
      told: [{ status: 400, code: "invalid_type", param: "signature" }],
    },
    {
      rows: [183],
      what: "a signature that is too short",
      sent: postedJson({ ...asked, signature: "s" }, atCredential),
      told: [{ status: 400, code: "invalid_value", param: "signature", says: /64 bytes in base64url/ }],
    },
    {
      rows: [183],
      what: "the key of an account in place of a machine's",
      sent: postedJson({ ...asked, public_key: `A${publicKey.slice(1)}` }, atCredential),
      told: [{ status: 400, code: "invalid_value", param: "public_key" }],
    },
    {
      rows: [184],
      what: "a request for a credential that is too long",
      sent: postedJson({ ...asked, padding: "x".repeat(pairBodyBytesMax) }, atCredential),
      told: [{ status: 413, code: "request_too_large", says: /1024 bytes \(pairBodyBytesMax\)/ }],
      afterwards: "closed",
    },
    {
      rows: [185],
      what: "a credential for a challenge that the site did not make",
      sent: postedJson(asked, atCredential),
      told: [{ status: 403, code: "challenge_invalid", param: "challenge", says: /challengeMsMax/ }],
    },
  ],
  elsewhere: [
    ...held(177, overHttp, "reads no body beyond a small limit, with and without its length"),
    // 178: a proof that is replayed later answers an old challenge.
    ...held(178, "unit/gateway/a-challenge-is-good-for-a-minute", "a challenge is good for a minute"),
    // 179: a stranger learns nothing of a join line.
    ...held(179, overHttp, "tells an unknown line from a wrong proof by nothing", "refuses an expired line"),
    // 180: a stolen join line.
    ...held(
      180,
      overHttp,
      "tells both sides of a second use",
      "takes no line any more that was replaced",
      "accepts no key twice",
    ),
    ...held(
      180,
      "contract/machine-store.contract",
      "exactly one of many machines that use one join line at once is paired",
    ),
    // 181: guessers of proofs.
    ...held(181, "unit/gateway/guessed-join-lines-wait-in-a-lane", "asks the store in one lane"),
    // 185: an old challenge. 186: a proof that was made for something else, or by a key that is not good.
    ...held(185, overCredentials, "is refused when its challenge is older than its limit"),
    ...held(
      186,
      overCredentials,
      "that signs the bare nonce",
      "relayed from another site",
      "relayed from a tunnel",
      "for an earlier challenge",
      "of a key that this site never paired, or whose machine was revoked",
    ),
  ],
  unasserted: [],
};
