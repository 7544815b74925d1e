import { setFlagsFromString } from "node:v8";

/**
 * Has V8 make all objects young, and not some of them old at once. It would do that where it finds that nearly all of a kind
 * survived, as those of requests do while many are under way for the first time; for as long as the process lives each of
 * them then keeps all that belongs to its request until the whole heap is gone through, and never to be collected young is
 * what they are dearest at.
 */
export function bearYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
