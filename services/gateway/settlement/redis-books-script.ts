import { usageDaysAt } from "#shared/usage/redis-usage.ts";
import { usageKeptDays } from "#shared/usage/usage-row.ts";
import { redisLimitsLua } from "../limits/redis-limits-script.ts";

/** The lifetime of a batch number. It is longer than any gateway can stay unaware that its batch was written. */
const sequenceKeptForMs = 24 * 3_600_000;
/** The tokens spent in a period are kept this long after its end, for operators who want to look. */
const spentKeptForMs = 7 * 24 * 3_600_000;
/** A gateway that wrote within this time counts as present. A gateway writes every few seconds. */
const gatewayIsThereForMs = 15_000;

/**
 * ARGV: a batch as JSON. Its counts are text, because cjson would round them. Replies the number of present gateways.
 * The script notes the batch as written before it writes it. If Redis cannot finish a batch, a retry must not add half
 * of it again and again.
 */
export const writeBatchLua = `${redisLimitsLua}
local batch = cjson.decode(ARGV[1])

local function settle(each)
  local id = each.keyId
  local requests, tokens, reserved, unwritten, keptUntil = levelsOf(id, each.requestsPerMinute, each.tokensPerMinute)
  local fields = {}
  local function set(field, number)
    fields[#fields + 1] = field
    fields[#fields + 1] = number
  end
  if each.requestsPerMinute and each.requests ~= 0 then
    set("requests", math.max(0, requests + each.requests))
    set("requestsAt", now)
  end
  if each.tokensPerMinute and each.tokens ~= 0 then
    set("tokens", math.max(0, tokens + each.tokens))
    set("tokensAt", now)
  end
  local freed, written = 0, 0
  for _, seat in ipairs(each.seats) do freed = freed + free(id, seat) end
  if each.wasTold then written = forget(id, batch.name) end
  if freed + written ~= 0 then set("reserved", whole(reserved - freed - written)) end
  if written ~= 0 then set("unwritten", whole(unwritten - written)) end
  setLevels(id, keptUntil, fields)
end

local function renew(each)
  local id = each.keyId
  local seats, reservations = prefix .. "seats:" .. id, prefix .. "reservations:" .. id
  call("ZADD", seats, nowMs + batch.seatLivesMs, each.seat)
  keep(seats)
  if each.hasBudget and call("HSETNX", reservations, each.seat, whole(each.budgetTokens)) == 1 then
    call("HINCRBY", prefix .. "limits:" .. id, "reserved", whole(each.budgetTokens))
    keep(prefix .. "limits:" .. id)
    keep(reservations)
  end
end

local function spend(each)
  local name = prefix .. each.at
  call("INCRBY", name, each.tokens)
  call("PEXPIREAT", name, whole(each.endsAtMs + ${spentKeptForMs}))
end

local function count(each)
  local name = prefix .. each.at
  for _, field in ipairs(each.fields) do call("HINCRBY", name, field[1], field[2]) end
  call("EXPIRE", name, ${usageKeptDays * 86_400})
  call("ZADD", prefix .. "${usageDaysAt}", 0, each.day)
  call("ZREMRANGEBYRANK", prefix .. "${usageDaysAt}", 0, -${usageKeptDays + 2})
end

local written = prefix .. "written:" .. batch.gateway
if batch.sequence > tonumber(call("GET", written) or 0) then
  call("SET", written, whole(batch.sequence), "PX", ${sequenceKeptForMs})
  for _, each in ipairs(batch.settled) do settle(each) end
  for _, each in ipairs(batch.renewed) do renew(each) end
  for _, each in ipairs(batch.spent) do spend(each) end
  for _, each in ipairs(batch.usage) do count(each) end
end

local gateways = prefix .. "gateways"
call("ZADD", gateways, now, batch.gateway)
call("ZREMRANGEBYSCORE", gateways, "-inf", whole(nowMs - ${gatewayIsThereForMs}))
call("PEXPIRE", gateways, ${gatewayIsThereForMs})
return call("ZCARD", gateways)
`;
