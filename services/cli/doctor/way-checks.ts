import { lookup } from "node:dns/promises";
import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";
import { type PeerCertificate, TLSSocket } from "node:tls";
import { checkTunnel } from "#shared/site/nats-tunnel.ts";
import type { Clock } from "#shared/process/clock.ts";
import { onOneLine } from "#shared/process/clean-text.ts";
import { challengeAnswer, challengePath, streamProbe, streamProbePath } from "#shared/protocol/pairing.ts";
import { packageCommand } from "#shared/protocol/site-package.ts";
import { askSite, openSite, type Site, whyNotReached } from "#shared/site/reach-site.ts";
import { codeOf } from "../terminal/command-line.ts";
import { type Check, failed, type Finding, type DoctorContext, ok, skipped, warning } from "./run-checks.ts";

/** A site, and the credential of a machine that is paired with it. */
export interface SiteAddress extends DoctorContext {
  /** The site's URL without a path. */
  readonly origin: string;
  /** The site's pinned certificate in PEM form. */
  readonly certificate?: string | undefined;
  /** The id that the site must have. */
  readonly site?: string | undefined;
  readonly credential?: { readonly site: string; readonly publicKey: string; readonly seed: string } | undefined;
}

/** Returns the checks of the way to a site: name, certificate, clock, the site's answer, its tunnel and its streams. */
export function wayChecks(way: SiteAddress): readonly Check[] {
  const site = openSite(way);
  return [
    { name: "name", look: () => lookUp(way) },
    { name: "certificate", needs: ["name"], look: (signal) => lookAtCertificate(site, { ...way, signal }) },
    { name: "clock", needs: ["certificate"], look: (signal) => compareClocks(site, { ...way, signal }) },
    { name: "site", needs: ["certificate"], look: () => askForId(site, way) },
    { name: "tunnel", needs: ["site"], look: (signal) => tryTunnel(site, { ...way, signal }) },
    { name: "streams", needs: ["site"], look: (signal) => timeStream(site, { ...way, signal }) },
  ];
}

async function lookUp({ origin, environment }: SiteAddress): Promise<Finding> {
  const host = new URL(origin).hostname.replace(/^\[|\]$/g, "");
  if (isIP(host) !== 0) return ok(`${host} is an address.`);
  try {
    const found = await lookup(host, { all: true });
    return ok(`${host} is at ${found.map(({ address }) => address).join(", ")}.`);
  } catch (error) {
    const code = codeOf(error);
    const proxy = environment["HTTPS_PROXY"] || environment["https_proxy"];
    if (proxy) return ok(`${host} is not known here (${code}); the proxy of HTTPS_PROXY looks it up.`);
    return failed(
      `The name ${host} is not known here (${code}).`,
      "Check the spelling of the site's URL, the name's record at its DNS provider, and this host's DNS servers.",
    );
  }
}

/** Public authorities renew certificates of 90 days when 30 are left. */
export const certificateDaysMin = 14;

/** Returns the days until a certificate expires. */
export function daysUntil(validTo: string, clock: Clock): number {
  return Math.floor((Date.parse(validTo) - clock.wall()) / 86_400_000);
}

async function lookAtCertificate(site: Site, { signal, clock }: CheckedAddress): Promise<Finding> {
  const { socket } = await get(site, challengePath, signal);
  if (site.origin.startsWith("http:")) return ok(`${site.origin} is on this host, in clear text.`);
  const certificate = socket instanceof TLSSocket ? socket.getPeerCertificate() : undefined;
  if (certificate?.valid_to === undefined) return ok("It is trusted; the connection does not show it.");
  const days = daysUntil(certificate.valid_to, clock);
  const told = `The certificate is ${site.isPinned ? "the pinned one" : `of ${authorityOf(certificate)}`}, and valid for ${days} days.`;
  if (days >= certificateDaysMin) return ok(told);
  return warning(told, "Renew it on the site, and see why that did not happen by itself.");
}

function authorityOf({ issuer }: PeerCertificate): string {
  const name = issuer.O ?? issuer.CN ?? "an unnamed authority";
  return Array.isArray(name) ? name.join(", ") : name;
}

/** Skews at which certificates and expiry times are judged wrongly now and then, and at which pairing fails. */
const skewMsWarned = 5_000;
const skewMsMax = 60_000;

async function compareClocks(site: Site, { signal, clock }: CheckedAddress): Promise<Finding> {
  const askedAtMs = clock.wall();
  const { headers } = await get(site, challengePath, signal);
  const told = Date.parse(headers.date ?? "");
  if (Number.isNaN(told)) return skipped("The site does not tell its time.");
  // The header has whole seconds.
  const skewMs = (askedAtMs + clock.wall()) / 2 - (told + 500);
  const seconds = Math.round(Math.abs(skewMs) / 1_000);
  if (Math.abs(skewMs) <= skewMsWarned) return ok(`This host and the site agree within ${Math.max(1, seconds)} s.`);
  const finding = `The clock of this host is ${seconds} s ${skewMs > 0 ? "ahead of" : "behind"} that of the site.`;
  const remedy = "Set both by NTP (`timedatectl set-ntp true`, or the settings of date and time).";
  return Math.abs(skewMs) > skewMsMax ? failed(finding, remedy) : warning(finding, remedy);
}

async function askForId(site: Site, { site: expected }: SiteAddress): Promise<Finding> {
  const answer = await askSite(site, { method: "GET", path: challengePath }, challengeAnswer);
  if (expected === undefined || answer.site === expected)
    return ok(`${site.origin} answers as the site ${answer.site}.`);
  return failed(
    `${site.origin} is another site than expected (${answer.site} in place of ${expected}).`,
    "See where the name and the proxy in front lead. If the site was set up anew, pair its machines anew.",
  );
}

async function tryTunnel(site: Site, { credential, clock, version, signal }: CheckedAddress): Promise<Finding> {
  const beganMs = clock.now();
  const { machine, trunkline: theirs, cordon } = await checkTunnel(site, { credential, signal });
  const took = `in ${Math.round(clock.now() - beganMs)} ms`;
  if (machine === undefined) return ok(`A WebSocket reaches the gateway ${took}.`);
  const told = `The site admits this machine as '${machine}' ${took}`;
  if (cordon !== undefined) {
    return warning(
      `${told}, and gives it no jobs (${onOneLine(cordon)}).`,
      `On the site: \`trunkline machines uncordon ${machine}\`.`,
    );
  }
  if (theirs === undefined || theirs === version) return ok(`${told}; both run version ${version}.`);
  return warning(
    `${told}; it runs version ${theirs}, and this is ${version}.`,
    `Install the site's version here: \`${packageCommand(site.origin, theirs)} agent install\`.`,
  );
}

/** Part of the stream's time within which all of its events arrive if a proxy held them back. */
const heldBackPart = 0.5;

async function timeStream(site: Site, { signal, clock }: CheckedAddress): Promise<Finding> {
  const response = await get(site, streamProbePath, signal);
  if (response.statusCode === 503) return skipped("The site tries as many streams as it may just now.");
  if (response.statusCode !== 200) {
    return skipped(`The site offers no stream to try (HTTP ${response.statusCode}); it is older than this version.`);
  }
  const arrivedMs: number[] = [];
  let lineEnds = 0;
  try {
    for await (const chunk of response.setEncoding("utf8")) {
      lineEnds += String(chunk).split("\n").length - 1;
      // An event is a line and an empty line.
      while (arrivedMs.length < Math.floor(lineEnds / 2)) arrivedMs.push(clock.now());
    }
  } catch (error) {
    throw whyNotReached(error, site);
  }
  const { events, everyMs } = streamProbe;
  const sentWithinMs = (events - 1) * everyMs;
  const withinMs = Math.round((arrivedMs.at(-1) ?? 0) - (arrivedMs[0] ?? 0));
  if (arrivedMs.length !== events) {
    return failed(
      `A stream of ${events} events ended after ${arrivedMs.length}.`,
      "Look at the proxy in front of the site: it must pass text/event-stream on unchanged.",
    );
  }
  if (withinMs >= sentWithinMs * heldBackPart)
    return ok(`${events} events arrived as they were sent, within ${withinMs} ms.`);
  return failed(
    `Something on the way holds streams back: ${events} events that were sent within ${sentWithinMs} ms arrived within ${withinMs} ms.`,
    "Turn off buffering and compression of text/event-stream in the proxy in front (nginx: proxy_buffering off; Caddy: flush_interval -1).",
  );
}

type CheckedAddress = SiteAddress & { readonly signal: AbortSignal };

/** Returns the response as soon as its head has arrived. Only the body of a stream is left to read. */
function get(site: Site, path: string, signal: AbortSignal): Promise<http.IncomingMessage> {
  const url = new URL(path, site.origin);
  const { request } = url.protocol === "https:" ? https : http;
  return new Promise((resolve, reject) => {
    const asking = request(url, { agent: site.agent, signal, headers: { accept: "*/*" } }, (response) => {
      if (path !== streamProbePath) response.resume();
      resolve(response);
    });
    asking.on("error", (error) => reject(whyNotReached(error, site))).end();
  });
}
