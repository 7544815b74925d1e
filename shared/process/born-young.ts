import { setFlagsFromString } from "node:v8";

/**
 * Disables V8's pretenuring, so that all objects start in the young generation. V8 otherwise allocates a kind of object
 * in the old generation once nearly all of its objects survived. Objects of requests do survive while many first
 * requests are under way, and V8 keeps that decision for the life of the process. An old object keeps everything of its
 * request alive until a full collection. A young one is freed by the next small collection, which costs next to
 * nothing.
 */
export function bearYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
