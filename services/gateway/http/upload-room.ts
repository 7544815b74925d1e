import { Fault } from "#shared/fault/fault.ts";

const mib = 1024 * 1024;

/** Bytes of all bodies that are arriving at a gateway, counted as they come. */
export const uploadBytesMax = 512 * mib;

/** The part of `uploadBytesMax` that large bodies cannot take, so that small ones always find room. */
const smallLaneShare = 1 / 8;
/** Size of the largest small body. */
export const smallBodyBytesMax = 256 * 1024;

/** The part of a lane that one sender may take. */
const senderShare = 1 / 4;
const smallSenderShare = 1 / 16;

/** One part of the room, with a limit for all senders together and a limit for each. */
class Lane {
  readonly #bytesMax: number;
  readonly #senderBytesMax: number;
  readonly #takenBy = new Map<string, number>();
  #taken = 0;

  constructor(bytesMax: number, senderBytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#senderBytesMax = senderBytesMax;
  }

  /** Returns false, and takes nothing, when the lane or the sender's part of it is full. */
  take(sender: string, bytes: number): boolean {
    const taken = (this.#takenBy.get(sender) ?? 0) + bytes;
    if (this.#taken + bytes > this.#bytesMax || taken > this.#senderBytesMax) return false;
    this.#taken += bytes;
    this.#takenBy.set(sender, taken);
    return true;
  }

  giveBack(sender: string, bytes: number): void {
    this.#taken -= bytes;
    const taken = (this.#takenBy.get(sender) ?? 0) - bytes;
    if (taken > 0) this.#takenBy.set(sender, taken);
    else this.#takenBy.delete(sender);
  }
}

/**
 * The memory for bodies while they arrive. A body counts with the bytes that have come, never with its
 * `Content-Length`. A sender takes only as many bytes from others as it has sent.
 */
export class UploadRoom {
  readonly small: Lane;
  readonly large: Lane;

  /** A sender's share of `large` has room for at least one body of the largest size. */
  constructor({ bodyBytesMax, bytesMax = uploadBytesMax }: { bodyBytesMax: number; bytesMax?: number }) {
    const smallBytesMax = bytesMax * smallLaneShare;
    const largeBytesMax = bytesMax - smallBytesMax;
    this.small = new Lane(smallBytesMax, smallBytesMax * smallSenderShare);
    this.large = new Lane(largeBytesMax, Math.max(largeBytesMax * senderShare, bodyBytesMax));
  }

  /** `sender` is the id of a key, or an address where no key is proved. */
  enter(sender: string): ArrivingBody {
    return new ArrivingBody(this, sender);
  }
}

/**
 * One body while it arrives. It moves to the lane of large bodies when it grows, or when the lane of small ones is
 * full.
 */
export class ArrivingBody {
  readonly #room: UploadRoom;
  readonly #sender: string;
  #lane: Lane;
  #bytes = 0;

  constructor(room: UploadRoom, sender: string) {
    this.#room = room;
    this.#sender = sender;
    this.#lane = room.small;
  }

  /** Counts bytes that have come. Throws `server_is_overloaded` when there is no room for them. */
  grow(bytes: number): void {
    const { small, large } = this.#room;
    const grown = this.#bytes + bytes;
    const isTaken =
      this.#lane === small && (grown > smallBodyBytesMax || !small.take(this.#sender, bytes))
        ? this.#moveTo(large, grown)
        : this.#lane === small || large.take(this.#sender, bytes);
    if (!isTaken) throw full();
    this.#bytes = grown;
  }

  /** Releases all bytes of the body. A second call does nothing. */
  leave(): void {
    this.#lane.giveBack(this.#sender, this.#bytes);
    this.#bytes = 0;
  }

  #moveTo(lane: Lane, bytes: number): boolean {
    this.leave();
    this.#lane = lane;
    return lane.take(this.#sender, bytes);
  }
}

function full(): Fault {
  return new Fault("server_is_overloaded", {
    message: `The requests that are arriving here fill ${uploadBytesMax} bytes, or this sender's share of them (uploadBytesMax). Send the request again in a moment.`,
  });
}
