import { serveOrders } from "#shared/process/work-thread.ts";
import { readRequest, type ReadRequest } from "./read-request.ts";
import type { ReadOrder } from "./request-reader.ts";

serveOrders(
  ({ outer, bytes }: ReadOrder) => {
    try {
      return readRequest(outer, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    } finally {
      // Nothing else refers to these bytes. Memory that waits for the garbage collector makes it run more often.
      if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
    }
  },
  ({ body }: ReadRequest) => body,
);
