import { expect, test } from "vitest";
import { heedsProxies, openSite, whyNotReached } from "#shared/site/reach-site.ts";

const origin = "https://models.example.org";
const failed = (code: string, fields: object = {}) => Object.assign(new Error("it failed"), { code, ...fields });

test.each([
  ["ECONNREFUSED", {}, true, /cannot be reached \(ECONNREFUSED\): check/],
  ["ABORT_ERR", {}, true, /no answer within 10 s/],
  ["EAI_AGAIN", {}, true, /cannot be reached \(EAI_AGAIN\)/],
  ["CERT_HAS_EXPIRED", {}, false, /not valid today.*renew.*clock/],
  ["ERR_TLS_CERT_ALTNAME_INVALID", {}, false, /for other names/],
  [
    "SELF_SIGNED_CERT_IN_CHAIN",
    {},
    false,
    /unknown authority.*NODE_EXTRA_CA_CERTS.*tls internal.*NODE_USE_SYSTEM_CA.*join line/,
  ],
  ["EPROTO", {}, false, /does not speak TLS/],
  ["ERR_PROXY_TUNNEL", { statusCode: 407 }, false, /proxy of HTTPS_PROXY.*HTTP 407.*NO_PROXY/],
  ["ERR_PROXY_TUNNEL", { statusCode: 502 }, true, /HTTP 502/],
])("%s is told with its remedy, and asked again only if it may pass", (code, fields, retry, message) => {
  const failure = whyNotReached(failed(code, fields), openSite({ origin, environment: {} }));
  expect(failure).toMatchObject({ retry, message: expect.stringMatching(message) });
});

test("a Node that does not heed the proxy of its environment is named as the reason", () => {
  const site = { ...openSite({ origin, environment: { https_proxy: "http://proxy:3128" } }), ignoresProxy: true };
  expect(whyNotReached(failed("ETIMEDOUT"), site).message).toMatch(/does not heed HTTPS_PROXY, so run Node 22\.21/);
});

test.each([
  ["22.19.0", false],
  ["22.21.0", true],
  ["23.11.0", false],
  ["24.4.1", false],
  ["24.5.0", true],
  ["26.10.0", true],
])("Node %s heeds proxies: %s", (version, heeds) => {
  expect(heedsProxies(version)).toBe(heeds);
});
