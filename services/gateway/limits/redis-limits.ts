import { z } from "zod";
import { budgetPeriods } from "#shared/admin/key-terms.ts";
import { Fault } from "#shared/fault/fault.ts";
import { gatewayIsThereForMs } from "#shared/records/site-gateways.ts";
import type { Clock } from "#shared/process/clock.ts";
import type { RedisConnection, RedisScript } from "#shared/process/redis-connection.ts";
import { keptRequestsDefault, redisRequestsAt, type KeptRequests } from "#shared/requests/request-records.ts";
import { redisUsageAt, redisUsageDaysAt, redisUsageFields, usageKeptDays, type UsageRow } from "#shared/usage/usage.ts";
import {
  budgetPeriodAt,
  growthTokens,
  judgingLimits,
  needsSeat,
  requestRate,
  roundingUnits,
  limitStatusOf,
  tokenRate,
  usedAt,
  waitMsOf,
  windowMs,
} from "./judge-demand.ts";
import {
  madeOf,
  seatLivesMs,
  type Admission,
  type Charge,
  type Demand,
  type Growth,
  type Hold,
  type Refusal,
  type LimitsBook,
  type Settled,
  type Settlement,
  type LimitStatus,
} from "./limits.ts";

/** The lifetime of a key's records in Redis after their last change. A debt that takes longer ends with them. */
export const keptForMs = 24 * 3_600_000;
/** The lifetime of a settlement's number. It is longer than any gateway can stay unaware that it was booked. */
const sequenceKeptForMs = 24 * 3_600_000;
/** The tokens spent in a period are kept this long after its end, for operators who want to look. */
const spentKeptForMs = 7 * 24 * 3_600_000;
/** The seat of an answer that may be resumed is known for longer than the answer takes, is kept and waits to be booked. */
const seatedForMs = 20 * 60_000;
/** The use of requests under way waits for a gateway that books it, if all are gone, for as long as this. */
const runningKeptForMs = 7 * 24 * 3_600_000;

/**
 * The layout of a key's limits in Redis:
 *
 * - `limits:<id>` is a hash with the two buckets, each with the time of its level (milliseconds).
 * - `seats:<id>` has a seat for each request under way, by the time at which it is free unless it is renewed.
 * - `reservations:<id>` has the part of the budget that each of these requests reserved.
 * - `spent:<id>:<period>` counts the tokens that were used in a period.
 * - `running:<gateway>` has the use of its requests under way, and `booked:<gateway>` what was booked of them without it.
 * - `cut:<gateway>` has their records, in case that it is killed.
 * - `answer:<job>` has the seat of the latest request for an answer that can be resumed.
 *
 * All of them expire. KEYS[1] is the prefix of all keys, from which the scripts build the names that they need. That
 * works with one Redis, with or without Sentinel, but not with Redis Cluster. The time is the clock of Redis, so that
 * gateways need not agree on it. `redis.call` formats numbers in full; replies would cut fractions off.
 */
const commonLua = `
local call = redis.call
local prefix = KEYS[1]
local time = call("TIME")
local nowMs = time[1] * 1000 + math.floor(time[2] / 1000)

-- What this call has read, each once. \`keep\` writes the levels, and how long each is kept.
local levels, seats, spendings = {}, {}, {}

local function levelOf(id, bucket, limit, max)
  if not limit then return 0 end
  levels[id] = levels[id] or {}
  if not levels[id][bucket] then
    local kept = call("HMGET", prefix .. "limits:" .. id, bucket, bucket .. "At")
    local elapsedMs = kept[1] and math.max(0, nowMs - kept[2])
    levels[id][bucket] = kept[1] and math.max(0, kept[1] - elapsedMs * limit / ${windowMs}) or 0
  end
  return math.min(levels[id][bucket], max)
end

local function change(id, bucket, limit, max, by)
  if not limit or by == 0 then return end
  local level = levelOf(id, bucket, limit, max) + by
  levels[id][bucket] = math.min(math.max(0, level), max)
end

local function free(id, seat)
  call("ZREM", prefix .. "seats:" .. id, seat)
  call("HDEL", prefix .. "reservations:" .. id, seat)
end

local function seatsOf(id)
  if seats[id] then return seats[id] end
  for _, lapsed in ipairs(call("ZRANGEBYSCORE", prefix .. "seats:" .. id, "-inf", nowMs)) do free(id, lapsed) end
  seats[id] = { taken = call("ZCARD", prefix .. "seats:" .. id), reserved = 0 }
  for _, held in ipairs(call("HVALS", prefix .. "reservations:" .. id)) do
    seats[id].reserved = seats[id].reserved + held
  end
  return seats[id]
end

local function take(id, seat, livesMs, budgetTokens)
  local its = seatsOf(id)
  its.taken = its.taken + call("ZADD", prefix .. "seats:" .. id, nowMs + livesMs, seat)
  if not budgetTokens then return end
  local held = tonumber(call("HGET", prefix .. "reservations:" .. id, seat) or 0)
  local more = math.max(0, budgetTokens - held)
  call("HSET", prefix .. "reservations:" .. id, seat, held + more)
  its.reserved = its.reserved + more
end

local function spentOf(spentAt)
  spendings[spentAt] = spendings[spentAt] or tonumber(call("GET", prefix .. spentAt) or 0)
  return spendings[spentAt]
end

local function keep()
  for id, buckets in pairs(levels) do
    for bucket, level in pairs(buckets) do call("HSET", prefix .. "limits:" .. id, bucket, level, bucket .. "At", nowMs) end
    call("PEXPIRE", prefix .. "limits:" .. id, ${keptForMs})
  end
  for id in pairs(seats) do
    call("PEXPIRE", prefix .. "seats:" .. id, ${keptForMs})
    call("PEXPIRE", prefix .. "reservations:" .. id, ${keptForMs})
  end
end
`;

/**
 * Decides on a demand in the order of `judgeDemand`. Returns the limit that refuses or an empty text, the level of both
 * buckets, the tokens spent, and the tokens reserved of the budget. Buckets are written even when nothing is taken: after
 * the clock of Redis was set back, they drain from there.
 */
const admitLua = `
local function inFull(number) return string.format("%.17g", number) end

local function admit(demand, livesMs)
  local id, requestsLimit, tokensLimit = demand.keyId, demand.requestsPerMinute, demand.tokensPerMinute
  local concurrency, budget = demand.concurrency, demand.budget
  local needed = demand.promptTokens - ${growthTokens}
  local requests = levelOf(id, "requests", requestsLimit, requestsLimit)
  local tokens = levelOf(id, "tokens", tokensLimit, math.huge)
  local cost = tokensLimit and math.min(demand.tokens, tokensLimit) or 0
  local its = (concurrency or budget) and seatsOf(id)
  local spent, reserved, budgetTokens = budget and spentOf(demand.spentAt) or 0, its and its.reserved, 0

  local refusedBy = ""
  if budget and spent >= budget then refusedBy = "budget"
  elseif budget and spent + needed > budget or tokensLimit and needed > tokensLimit then refusedBy = "prompt"
  elseif budget and spent + reserved + math.max(1, needed) > budget then refusedBy = "budget_reserved"
  elseif concurrency and its.taken >= concurrency then refusedBy = "concurrency"
  elseif requestsLimit and requests + 1 > requestsLimit + ${roundingUnits} then refusedBy = "requests"
  elseif tokensLimit and tokens + cost > tokensLimit + ${roundingUnits} then refusedBy = "tokens"
  else
    requests = requests + 1
    tokens = tokens + cost
    if budget then budgetTokens = math.min(demand.tokens, budget - spent - reserved) end
    if its then take(id, demand.seat, livesMs, budget and budgetTokens) end
  end
  if requestsLimit then levels[id].requests = requests end
  if tokensLimit then levels[id].tokens = tokens end
  return { refusedBy, inFull(requests), inFull(tokens), spent, budgetTokens }
end
`;

/**
 * Books a settlement. ARGV: the settlement as JSON, and the records of its requests. Replies the number of present
 * gateways, or 0 if an earlier settlement of the gateway is missing, what each hold that is to grow got of both limits, as
 * `growHold` decides, and the decision on each demand. Ends come first, so that a demand finds what they free. The script notes the number before it
 * books anything: if Redis cannot finish a settlement, a retry must not add half of it again and again.
 */
const settleLua = `${commonLua}${admitLua}
local settlement = cjson.decode(ARGV[1])

-- Adds to a count, unless it is too large to grow: such a count is left out of sums, and fails none.
local function add(...)
  local reply = redis.pcall(...)
  if type(reply) == "table" and reply.err and not string.find(reply.err, "overflow") then error(reply.err) end
end

-- Adds what was used, or takes it back where \`times\` is -1.
local function count(used, times)
  for _, each in ipairs(used.spent) do
    add("INCRBY", prefix .. each.at, times * each.tokens)
    call("PEXPIREAT", prefix .. each.at, each.endsAtMs + ${spentKeptForMs})
  end
  for _, each in ipairs(used.usage) do
    local name = prefix .. each.at
    for _, field in ipairs(each.fields) do add("HINCRBY", name, field[1], times * field[2]) end
    call("EXPIRE", name, ${usageKeptDays * 86_400})
    call("ZADD", prefix .. "${redisUsageDaysAt}", 0, each.day)
    call("ZREMRANGEBYRANK", prefix .. "${redisUsageDaysAt}", 0, -${usageKeptDays + 2})
  end
end

-- Writes the record of a request that was cut off, with what it used. Returns the id of its entry.
local function recordCut(text, made)
  local record = cjson.decode(text)
  for field, value in pairs(made) do record[field] = value end
  return call("XADD", prefix .. "${redisRequestsAt}", "*", "record", cjson.encode(record))
end

-- An answer has the seat of the latest request for it. That of the one before is free, whose gateway may be dead.
local function seatAnswer(keyId, answer)
  local at = prefix .. "answer:" .. answer.job
  local before = call("GET", at)
  if before and not answer.isResumed then return end
  if before then free(keyId, before) end
  call("SET", at, answer.seat, "PX", ${seatedForMs})
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

local written = prefix .. "written:" .. settlement.gateway
local last = tonumber(call("GET", written) or 0)
if settlement.sequence > math.max(last, settlement.acknowledged) + 1 then return { 0, {}, {} } end
if settlement.sequence > last then
  call("SET", written, settlement.sequence, "PX", ${sequenceKeptForMs})
  for _, each in ipairs(settlement.changes) do
    local requestsLimit, tokensLimit = each.requestsPerMinute, each.tokensPerMinute
    change(each.keyId, "requests", requestsLimit, requestsLimit, each.requests)
    change(each.keyId, "tokens", tokensLimit, math.huge, each.tokens)
    if each.seat then free(each.keyId, each.seat) end
  end
  count(settlement, 1)
  local requests = prefix .. "${redisRequestsAt}"
  local running, booked = prefix .. "running:" .. settlement.gateway, prefix .. "booked:" .. settlement.gateway
  local cut = prefix .. "cut:" .. settlement.gateway
  for _, each in ipairs(settlement.running) do
    if call("HEXISTS", booked, each.id) == 0 then
      local isNew = call("HSET", running, each.id, each.used) == 1
      if isNew and each.answer then seatAnswer(each.keyId, each.answer) end
      if each.request then call("HSET", cut, each.id, each.request) end
    end
  end
  if #settlement.running > 0 then
    call("PEXPIRE", running, ${runningKeptForMs})
    call("PEXPIRE", cut, ${runningKeptForMs})
  end
  for _, id in ipairs(settlement.over) do
    call("HDEL", cut, id)
    local earlier = call("HDEL", running, id) == 0 and call("HGET", booked, id)
    if earlier then
      local used = cjson.decode(earlier)
      count(used, -1)
      if used.entry then call("XDEL", requests, used.entry) end
      call("HDEL", booked, id)
    end
  end
  for each = 2, #ARGV do call("XADD", requests, "MAXLEN", "~", settlement.requestsMax, "*", "record", ARGV[each]) end
  if settlement.requestsMax == 0 then call("UNLINK", requests)
  else call("XTRIM", requests, "MINID", nowMs - settlement.requestsKeptMs) end
end
for _, each in ipairs(settlement.renewed) do take(each.keyId, each.seat, settlement.seatLivesMs, each.budgetTokens) end

local grants = {}
for _, each in ipairs(settlement.growing) do
  local id, limit, budget, tokens, budgetTokens = each.keyId, each.tokensPerMinute, each.budget, 0, 0
  local function within(held, left)
    return math.max(0, math.min(each.wanted - held, math.floor(left + ${roundingUnits})))
  end
  if limit then
    tokens = within(each.tokens, limit - levelOf(id, "tokens", limit, math.huge))
    change(id, "tokens", limit, math.huge, tokens)
  end
  if budget then
    take(id, each.seat, settlement.seatLivesMs, each.budgetTokens)
    budgetTokens = within(each.budgetTokens, budget - spentOf(each.spentAt) - seatsOf(id).reserved)
    take(id, each.seat, settlement.seatLivesMs, each.budgetTokens + budgetTokens)
  end
  table.insert(grants, { tokens, budgetTokens })
end

local admissions = {}
for _, each in ipairs(settlement.demands) do table.insert(admissions, admit(each, settlement.seatLivesMs)) end
keep()

local gateways = prefix .. "gateways"
call("ZADD", gateways, nowMs, settlement.gateway)
local goneAt = nowMs - settlement.isThereForMs
for _, gone in ipairs(call("ZRANGEBYSCORE", gateways, "-inf", goneAt)) do bookOf(gone) end
call("ZREMRANGEBYSCORE", gateways, "-inf", goneAt)
call("PEXPIRE", gateways, ${runningKeptForMs})
return { call("ZCARD", gateways), grants, admissions }
`;

/** An empty key, to which the connection adds its prefix. */
const prefixOnly = "";

/** The reply to a settlement: the number of gateways, both tokens of each hold that grows, and the decision on each demand. */
type SettleReply = readonly [
  gateways: number,
  grants: readonly (readonly [number, number])[],
  replies: readonly AdmitReply[],
];
type AdmitReply = readonly [by: Refusal | "", requests: string, tokens: string, spent: number, budgetTokens: number];
const limitStatusReply = z.tuple([z.array(z.string().nullable()), z.tuple([z.coerce.number(), z.coerce.number()])]);

/** Returns the Redis key that counts the tokens that an API key used in a period. */
export function spentAt(keyId: string, period: string): string {
  return `spent:${keyId}:${period}`;
}

interface BookOptions {
  readonly clock: Pick<Clock, "wall">;
  readonly kept?: KeptRequests;
  readonly seatLivesMs?: number;
  readonly isThereForMs?: number;
}

/** The book of all gateways together, exact at any moment. */
export class RedisLimitsBook implements LimitsBook {
  readonly #redis: RedisConnection;
  readonly #options: Required<BookOptions>;
  readonly #settle: RedisScript<SettleReply>;

  constructor(redis: RedisConnection, options: BookOptions) {
    this.#redis = redis;
    this.#options = { kept: keptRequestsDefault, seatLivesMs, isThereForMs: gatewayIsThereForMs, ...options };
    this.#settle = redis.script(settleLua, 1);
  }

  async limitStatus({ keyId, limits }: Pick<Demand, "keyId" | "limits">): Promise<LimitStatus> {
    const replies = await this.#redis.pipeline("tell how a key stands", (batch) =>
      batch.hmget(`limits:${keyId}`, "requests", "requestsAt", "tokens", "tokensAt").time(),
    );
    const [kept, [seconds, microseconds]] = limitStatusReply.parse(replies);
    const [requests = 0, requestsAtMs = 0, tokens = 0, tokensAtMs = 0] = kept.map(Number);
    const nowMs = seconds * 1_000 + microseconds / 1_000;
    const { requestsPerMinute: requestsLimit = 1, tokensPerMinute: tokensLimit = 1 } = limits;
    return limitStatusOf(limits, {
      requestsUsed: usedAt({ units: requests, atMs: requestsAtMs }, requestRate(requestsLimit), nowMs).units,
      tokensUsed: usedAt({ units: tokens, atMs: tokensAtMs }, tokenRate(tokensLimit), nowMs).units,
    });
  }

  async settle({ ended, charges, renewed, growing, demands, usage, running, requests, ...numbers }: Settlement) {
    const { clock, kept, ...lives } = this.#options;
    const wallMs = clock.wall();
    const text = JSON.stringify({
      ...numbers,
      ...lives,
      changes: [...ended.map(changeOfEnd), ...charges.map(changeOf)],
      renewed: renewed
        .filter(({ limits }) => needsSeat(limits))
        .map(({ keyId, seat, limits, budgetTokens }) => ({ keyId, seat, budgetTokens: limits.budget && budgetTokens })),
      growing: growing.map((each) => growthOf(each, wallMs)),
      demands: demands.map((each) => demandOf(each, wallMs)),
      ...usedOf(usage),
      running: running.map(({ id, usage: used, answer, request }) => {
        const moved = answer && { answer, movedUsage: usedOf([{ ...used, failed: 0 }]).usage };
        const made = { ...usedOf([used]), made: madeOf(used), ...moved };
        return { id, keyId: used.keyId, used: JSON.stringify(made), answer, request };
      }),
      requestsMax: kept.max,
      requestsKeptMs: kept.ms,
    });
    const purpose = demands.length > 0 ? "admit requests" : "write down what has ended";
    const [gateways, grants, replies] = await this.#settle(purpose, prefixOnly, text, ...requests);
    if (gateways === 0) {
      const [message, internal] = ["Usage cannot be booked just now.", "an earlier settlement is missing"];
      throw new Fault("backend_unavailable", { message, internal });
    }
    const grown = growing.map(({ hold }, at): Hold => {
      const [tokens, budgetTokens] = grants[at] ?? [0, 0];
      return { ...hold, tokens: hold.tokens + tokens, budgetTokens: hold.budgetTokens + budgetTokens };
    });
    return { gateways, grown, admissions: replies.map((each, at) => admissionOf(each, demands[at] as Demand, wallMs)) };
  }
}

function admissionOf(reply: AdmitReply, demand: Demand, wallMs: number): Admission {
  const [by, requests, tokensOfMinute, spentOfBudget, budgetTokens] = reply;
  const { keyId, limits, seat, tokens } = demand;
  const judging = judgingLimits(demand, limits);
  const { tokensPerMinute = 0, budget } = judging;
  const used = { requestsUsed: Number(requests), tokensUsed: Number(tokensOfMinute) };
  const limitStatus = limitStatusOf(judging, used);
  const spent = budget && spentOfBudget;
  if (by !== "") {
    const budgetEndsInMs = budget === undefined ? 0 : budgetPeriodAt(budget.per, wallMs).endsAtMs - wallMs;
    const waitMs = waitMsOf({ by, tokens, limits, used, budgetEndsInMs });
    return { outcome: "refused", by, waitMs, limitStatus, spent };
  }
  const hold: Hold = { keyId, limits, seat, tokens: Math.min(tokens, tokensPerMinute), budgetTokens, kept: "shared" };
  return { outcome: "admitted", hold, limitStatus, spent };
}

function demandOf(demand: Demand, wallMs: number) {
  const { keyId, seat, tokens, promptTokens = 0 } = demand;
  const { budget, ...limits } = judgingLimits(demand, demand.limits);
  const spending = budget && {
    budget: budget.tokens,
    spentAt: spentAt(keyId, budgetPeriodAt(budget.per, wallMs).name),
  };
  return { ...limits, ...spending, keyId, seat, tokens, promptTokens };
}

/** Returns the change of a key's buckets, and the seat to free. A negative number is given back. */
function changeOfEnd({ hold, ran, usedTokens }: Settled) {
  const { keyId, limits, seat } = hold;
  const charge = { keyId, limits, requests: ran ? 0 : -1, tokens: (ran ? usedTokens : 0) - hold.tokens };
  return { ...changeOf(charge), seat: needsSeat(limits) ? seat : undefined };
}

function changeOf({ keyId, limits: { requestsPerMinute, tokensPerMinute }, requests, tokens }: Charge) {
  return { keyId, requestsPerMinute, tokensPerMinute, requests, tokens };
}

function growthOf({ hold, usedTokens }: Growth, wallMs: number) {
  const { limits, ...held } = hold;
  const { tokensPerMinute, budget } = limits;
  const at = budget && spentAt(hold.keyId, budgetPeriodAt(budget.per, wallMs).name);
  return { ...held, tokensPerMinute, budget: budget?.tokens, spentAt: at, wanted: usedTokens + growthTokens };
}

/** Returns what is added to the books for these rows. */
function usedOf(usage: readonly UsageRow[]) {
  return {
    spent: usage.flatMap(spendings),
    usage: usage.map((row) => ({ day: row.day, at: redisUsageAt(row.day), fields: redisUsageFields(row) })),
  };
}

/** Returns what a row spends of the budget of its day and of its month: the key may get either budget later. */
function spendings({ keyId, day, promptTokens, completionTokens }: UsageRow) {
  const tokens = promptTokens + completionTokens;
  if (tokens === 0) return [];
  return budgetPeriods.map((per) => {
    const { name, endsAtMs } = budgetPeriodAt(per, Date.parse(day));
    return { at: spentAt(keyId, name), endsAtMs, tokens };
  });
}
