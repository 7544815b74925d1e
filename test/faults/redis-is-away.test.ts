import { redisMishap } from "./redis-mishap.ts";

redisMishap("while Redis is gone", {
  befalls: ({ redis }) => redis.kill(),
  ends: ({ redis }) => redis.restart(),
});

redisMishap("while Redis is frozen", {
  befalls: ({ redis }) => redis.freeze(),
  ends: ({ redis }) => redis.thaw(),
});
