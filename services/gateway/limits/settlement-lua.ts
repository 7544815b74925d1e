import { redisRequestsAt } from "#shared/requests/request-records.ts";
import { redisUsageDaysAt, usageKeptDays } from "#shared/usage/usage.ts";
import { bucketsAndSeatsLua } from "./book-lua.ts";
import { admitLua, growLua, renewLua } from "./decisions-lua.ts";

/** The settings of the script. They are a part of its text, so that no settlement repeats them. */
interface SettlementTerms {
  readonly seatLivesMs: number;
  readonly isThereForMs: number;
  /** The most records of requests that are kept, and for how long. */
  readonly requestsMax: number;
  readonly requestsKeptMs: number;
}

/** The lifetime of a settlement's number. It is longer than any gateway can stay unaware that it was booked. */
const sequenceKeptForMs = 24 * 3_600_000;
/** The use of a budget in a period is kept this long after its end, for operators who want to look. */
export const spentKeptForMs = 7 * 24 * 3_600_000;
/** The seat of an answer that may be resumed is known for longer than the answer takes, is kept and waits to be booked. */
const seatedForMs = 20 * 60_000;
/** The use of requests under way waits for a gateway that books it, if all are gone, for as long as this. */
const runningKeptForMs = 7 * 24 * 3_600_000;
const daySeconds = 86_400;

const bookLua = `
local requests = prefix .. "${redisRequestsAt}"

-- Adds to a count, and returns it, unless it is too large to grow: such a count is left out of sums, and fails none.
local function add(...)
  local reply = redis.pcall(...)
  if type(reply) ~= "table" or not reply.err then return reply end
  if not string.find(reply.err, "overflow") then error(reply.err) end
end

-- Adds what was used, or takes it back where \`times\` is -1.
local function count(used, times)
  for _, each in ipairs(used.spent) do
    -- The field is called as in version 0.2.0, whose gateways may book what this one has told.
    local by = times * each.tokens
    if add("INCRBY", prefix .. each.at, by) == by then
      call("PEXPIREAT", prefix .. each.at, each.endsAtMs + ${spentKeptForMs})
    end
  end
  for _, each in ipairs(used.usage) do
    local name, isNew = prefix .. each.at, false
    for _, field in ipairs(each.fields) do
      local by = times * field[2]
      if add("HINCRBY", name, field[1], by) == by then isNew = true end
    end
    if isNew then
      call("EXPIRE", name, (each.keptDays or ${usageKeptDays}) * ${daySeconds})
      call("ZADD", prefix .. "${redisUsageDaysAt}", 0, each.day)
      call("ZREMRANGEBYRANK", prefix .. "${redisUsageDaysAt}", 0, -${usageKeptDays + 2})
    end
  end
end
`;

const goneGatewayLua = `
-- Writes the record of a request that was cut off, with what it used. Returns the id of its entry.
local function recordCut(text, made)
  local record = cjson.decode(text)
  for field, value in pairs(made) do record[field] = value end
  return call("XADD", requests, "*", "record", cjson.encode(record))
end

-- What requests under way used so far is booked once their gateway is gone. It may be back later and book them itself.
local function bookOf(gateway)
  local running, cut, booked = prefix .. "running:" .. gateway, prefix .. "cut:" .. gateway, prefix .. "booked:" .. gateway
  local each = call("HGETALL", running)
  for at = 1, #each, 2 do
    local used, record = cjson.decode(each[at + 1]), call("HGET", cut, each[at])
    local seat = used.answer and call("GET", prefix .. "answer:" .. used.answer.job)
    -- An answer that went on elsewhere has not failed here.
    if seat and seat ~= used.answer.seat then used.usage = used.movedUsage end
    count(used, 1)
    if record then used.entry = recordCut(record, used.made) end
    call("HSET", booked, each[at], cjson.encode(used))
  end
  call("PEXPIRE", booked, ${sequenceKeptForMs})
  call("UNLINK", running, cut)
end
`;

const followLua = `
-- An answer has the seat of the latest request for it. That of the one before is free, whose gateway may be dead.
local function seatAnswer(answer, books)
  local at = prefix .. "answer:" .. answer.job
  local before = call("GET", at)
  if before and not answer.isResumed then return end
  if before then
    for _, id in ipairs(books or none) do freeUnknown(id, before) end
  end
  call("SET", at, answer.seat, "PX", ${seatedForMs})
end

-- Keeps what requests under way used so far, and forgets those that are over.
local function follow(settlement)
  local gateway = settlement.gateway
  local running, cut, booked = prefix .. "running:" .. gateway, prefix .. "cut:" .. gateway, prefix .. "booked:" .. gateway
  local under = settlement.running or none
  for _, each in ipairs(under) do
    if call("HEXISTS", booked, each.id) == 0 then
      local isNew = call("HSET", running, each.id, each.used) == 1
      if isNew and each.answer then seatAnswer(each.answer, each.books) end
      if each.request then call("HSET", cut, each.id, each.request) end
    end
  end
  if #under > 0 then
    call("PEXPIRE", running, ${runningKeptForMs})
    call("PEXPIRE", cut, ${runningKeptForMs})
  end
  for _, id in ipairs(settlement.over or none) do
    call("HDEL", cut, id)
    local earlier = call("HDEL", running, id) == 0 and call("HGET", booked, id)
    if earlier then
      local used = cjson.decode(earlier)
      count(used, -1)
      if used.entry then call("XDEL", requests, used.entry) end
      call("HDEL", booked, id)
    end
  end
end
`;

/**
 * Returns the script that books a settlement. ARGV: the settlement as JSON without its empty parts, and the records of its
 * requests. Replies the number of present gateways, or 0 if an earlier settlement of the gateway is missing, what each reservation
 * that is to grow got of the limits of each book, and the decision on each demand. Ends come first, so that a demand finds what they
 * free. The script notes the number before it books anything: if Redis cannot finish a settlement, a retry must not add half
 * of it again and again.
 */
export function settlementLua({ seatLivesMs, isThereForMs, requestsMax, requestsKeptMs }: SettlementTerms): string {
  return `${bucketsAndSeatsLua}${bookLua}
local settlement = cjson.decode(ARGV[1])
local sequence, written = settlement.sequence, prefix .. "written:" .. settlement.gateway
local last = call("SET", written, sequence, "PX", ${sequenceKeptForMs}, "GET")
local booked = tonumber(last or 0)
local isMissing = sequence > math.max(booked, settlement.acknowledged) + 1
if isMissing or sequence <= booked then
  if last then call("SET", written, last, "PX", ${sequenceKeptForMs}) else call("DEL", written) end
end
if isMissing then return { 0, {}, {} } end
if sequence > booked then
  for _, each in ipairs(settlement.changes or none) do
    local id, requestsLimit, tokensLimit, requests, tokens, seat, tokensHeld, moneyHeld = unpack(each)
    change(id, "requests", requestsLimit, requestsLimit, requests)
    change(id, "tokens", tokensLimit, math.huge, tokens)
    if seat then free(id, seat, tokensHeld, moneyHeld) end
  end
  if settlement.spent then count(settlement, 1) end
  if settlement.running or settlement.over then
    ${followLua}
    follow(settlement)
  end
  for each = 2, #ARGV do call("XADD", requests, "MAXLEN", "~", ${requestsMax}, "*", "record", ARGV[each]) end
  ${requestsMax === 0 ? 'call("UNLINK", requests)' : ""}
end

local livesMs, grants, admissions = ${seatLivesMs}, {}, {}
if settlement.renewed or settlement.growing then
  ${renewLua}
  for _, each in ipairs(settlement.renewed or none) do renew(each.id, each.seat, livesMs, each.budgets) end
  ${growLua}
  for _, each in ipairs(settlement.growing or none) do table.insert(grants, grow(each, livesMs)) end
end
if settlement.demands then
  ${admitLua}
  for _, each in ipairs(settlement.demands) do table.insert(admissions, admit(each, livesMs)) end
end
noteSums()
keepBuckets()
if settlement.notes then
  ${goneGatewayLua}
  -- Notes that the gateway is present, books those that are gone, and drops old records of requests.
  local function noteGateway(gateway)
    local gateways, goneAt = prefix .. "gateways", nowMs - ${isThereForMs}
    call("ZADD", gateways, nowMs, gateway)
    for _, gone in ipairs(call("ZRANGEBYSCORE", gateways, "-inf", goneAt)) do bookOf(gone) end
    call("ZREMRANGEBYSCORE", gateways, "-inf", goneAt)
    call("PEXPIRE", gateways, ${runningKeptForMs})
    call("XTRIM", requests, "MINID", nowMs - ${requestsKeptMs})
  end
  noteGateway(settlement.gateway)
end
return { math.max(1, call("ZCARD", prefix .. "gateways")), grants, admissions }
`;
}
