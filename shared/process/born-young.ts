import { setFlagsFromString } from "node:v8";

/**
 * Has V8 make all objects young, and not some of them old at once. It would do that where it finds that nearly all of a
 * kind survived, as those of requests do while many are under way for the first time, and would do it for as long as the
 * process lives. An object that is made old keeps all that belongs to its request until the whole heap is gone through;
 * one that is made young lets go of it at the next of the small collections, which cost next to nothing.
 */
export function bearYoung(): void {
  setFlagsFromString("--no-allocation-site-pretenuring");
}
