import { serveOrders } from "#shared/process/work-thread.ts";
import { textOfTokens } from "./openai-tokens.ts";
import { readRequest, type ReadRequest, type ReadOrder } from "./read-request.ts";

serveOrders(
  ({ outer, bytes, promptSeed }: ReadOrder) => {
    try {
      const body = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
      return readRequest(outer, body, { promptSeed, textOfTokens });
    } finally {
      // Nothing else refers to these bytes. Memory that waits for the garbage collector makes it run more often.
      if (bytes.buffer instanceof ArrayBuffer) bytes.buffer.transfer(0);
    }
  },
  ({ body }: ReadRequest) => body,
);
