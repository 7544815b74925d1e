import { redisMishap } from "./redis-mishap.ts";

redisMishap("while Redis is frozen", {
  befalls: ({ redis }) => redis.freeze(),
  ends: ({ redis }) => redis.thaw(),
});
