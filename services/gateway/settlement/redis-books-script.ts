import { usageDaysAt } from "#shared/usage/redis-usage.ts";
import { usageKeptDays } from "#shared/usage/usage-row.ts";
import { redisLimitsLua } from "../limits/redis-limits-script.ts";

/** Longer than any gateway can be kept from hearing that its batch was written. */
const sequenceKeptForMs = 24 * 3_600_000;
/** How long after its period a spending is kept, for whoever wants to look. */
const spentKeptForMs = 7 * 24 * 3_600_000;
/** Within this a gateway has written lately; it does so every few seconds. */
const gatewayIsThereForMs = 15_000;

/**
 * ARGV: a batch as JSON, its counts as text: cjson would round them. Replies how many gateways are there. That a batch
 * is written is noted before it is: should Redis be unable to finish one, it must not add half of it again and again.
 */
export const writeBatchLua = `${redisLimitsLua}
local batch = cjson.decode(ARGV[1])

local function settle(each)
  local key = keyOf(each.keyId)
  free(key, each.seat)
  if each.requestsPerMinute and each.requests ~= 0 then
    local used = requestsUsedOf(key, each.requestsPerMinute) + each.requests
    setUsed(key, "requests", each.requestsPerMinute, math.max(0, used))
  end
  if each.tokensPerMinute and each.tokens ~= 0 then
    local used = tokensUsedOf(key, each.tokensPerMinute) + each.tokens
    setUsed(key, "tokens", each.tokensPerMinute, math.max(0, used))
  end
  keep(key)
end

local function renew(each)
  local key = keyOf(each.keyId)
  redis.call("ZADD", key.seats, inFull(nowMs + batch.seatLivesMs), each.seat)
  if each.hasBudget then reserve(key, each.seat, each.budgetTokens) end
  keep(key)
end

local function spend(each)
  local name = prefix .. each.at
  redis.call("INCRBY", name, each.tokens)
  redis.call("PEXPIREAT", name, inFull(each.endsAtMs + ${spentKeptForMs}))
end

local function count(each)
  local name = prefix .. each.at
  for _, field in ipairs(each.fields) do redis.call("HINCRBY", name, field[1], field[2]) end
  redis.call("EXPIRE", name, ${usageKeptDays * 86_400})
  redis.call("ZADD", prefix .. "${usageDaysAt}", 0, each.day)
  redis.call("ZREMRANGEBYRANK", prefix .. "${usageDaysAt}", 0, -${usageKeptDays + 2})
end

local written = prefix .. "written:" .. batch.gateway
if batch.sequence > tonumber(redis.call("GET", written) or 0) then
  redis.call("SET", written, whole(batch.sequence), "PX", ${sequenceKeptForMs})
  for _, each in ipairs(batch.settled) do settle(each) end
  for _, each in ipairs(batch.renewed) do renew(each) end
  for _, each in ipairs(batch.spent) do spend(each) end
  for _, each in ipairs(batch.usage) do count(each) end
end

local gateways = prefix .. "gateways"
redis.call("ZADD", gateways, inFull(nowMs), batch.gateway)
redis.call("ZREMRANGEBYSCORE", gateways, "-inf", inFull(nowMs - ${gatewayIsThereForMs}))
redis.call("PEXPIRE", gateways, ${gatewayIsThereForMs})
return redis.call("ZCARD", gateways)
`;
