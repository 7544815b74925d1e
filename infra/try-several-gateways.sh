#!/usr/bin/env bash
# Runs a whole site on this machine and shows that it survives a gateway: NATS in operator mode with TLS, Redis, two
# gateways behind one address, and two machines with a demonstration model. Chats through each gateway, kills one with
# kill -9, and chats with both machines through the other one.
#
#   infra/try-several-gateways.sh           ends when it has shown that
#   infra/try-several-gateways.sh --keep    runs on until Ctrl-C
#
# It needs `npm ci`, openssl, curl, and nats-server and redis-server on the PATH. Every server listens on 127.0.0.1 at a
# free port, and every file lies in a temporary folder that the end removes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
keep=${1:-}
[[ -z $keep || $keep == --keep ]] || { echo "try-several-gateways.sh: '$keep' is unknown; the only option is --keep" >&2; exit 64; }
for program in nats-server redis-server openssl curl node_modules/.bin/node; do
  command -v "$program" > /dev/null || { echo "try-several-gateways.sh: $program is missing; the head of this file lists what it needs" >&2; exit 69; }
done

folder=$(mktemp -d)
declare -A pids
end() {
  trap - EXIT
  kill -TERM "${pids[@]}" 2> /dev/null || true
  wait 2> /dev/null || true
  rm -rf "$folder"
}
trap end EXIT
trap 'exit 130' INT TERM

trunkline=(node_modules/.bin/node services/cli/main.ts)
say() { printf '\n\033[1m%s\033[0m\n' "$1"; }
start() { # start <name> <command…>: in the background, with its output in a file
  local name=$1
  shift
  "$@" > "$folder/$name.out" 2> "$folder/$name.log" &
  pids[$name]=$!
}
until_works() { # until_works <what> <command…>: tries for 30 s
  local what=$1 end=$((SECONDS + 30))
  shift
  until "$@" > "$folder/answer" 2> "$folder/tried.log"; do
    kill -0 "${pids[@]}" 2> /dev/null || SECONDS=$end
    ((SECONDS < end)) || { echo "$what: does not work after 30 s, or a process has ended" >&2; tail -n 5 "$folder"/*.log >&2; exit 1; }
    sleep 0.2
  done
}
read -r nats redis site one two operations_one operations_two < <(node_modules/.bin/node -e '
  const servers = Array.from({ length: 7 }, () => require("node:net").createServer().listen(0, "127.0.0.1"));
  Promise.all(servers.map((server) => new Promise((listens) => server.once("listening", listens)))).then(() => {
    console.log(servers.map((server) => server.address().port).join(" "));
    for (const server of servers) server.close();
  });')

say "NATS and Redis"
"${trunkline[@]}" nats init "$folder/nats" > /dev/null 2>&1
NATS_TLS_DIR=$folder/tls infra/nats-ca.sh > /dev/null
mkdir "$folder/nats/jwt"
export NATS_TLS_CERT=$folder/tls/server.pem NATS_TLS_KEY=$folder/tls/server.key NATS_JWT_DIR=$folder/nats/jwt
start nats nats-server --config "$folder/nats/nats.conf" --addr 127.0.0.1 --port "$nats" --http_port 0
start redis redis-server --bind 127.0.0.1 --port "$redis" --dir "$folder" --appendonly yes

export TRUNKLINE_NATS_URL=tls://127.0.0.1:$nats TRUNKLINE_NATS_CA=$folder/tls/ca.pem
export TRUNKLINE_NATS_CREDS=$folder/nats/gateway.creds TRUNKLINE_NATS_SIGNING_KEY_FILE=$folder/nats/machines.seed
export TRUNKLINE_REDIS_URL=redis://127.0.0.1:$redis TRUNKLINE_KEY_PEPPER
TRUNKLINE_KEY_PEPPER=$(openssl rand -base64 32)

say "Two gateways behind one address"
export TRUNKLINE_PUBLIC_URL=http://127.0.0.1:$site
start gateway-1 env TRUNKLINE_PORT="$one" TRUNKLINE_OPERATIONS_PORT="$operations_one" "${trunkline[@]}" gateway
start gateway-2 env TRUNKLINE_PORT="$two" TRUNKLINE_OPERATIONS_PORT="$operations_two" "${trunkline[@]}" gateway
# Stands for the proxy of a real site, such as proxy/Caddyfile: takes the first gateway that it reaches.
start proxy node_modules/.bin/node -e '
  const net = require("node:net");
  const [listen, ...gateways] = process.argv.slice(1).map(Number);
  net.createServer((client) => lead(client, gateways)).listen(listen, "127.0.0.1");
  function lead(client, [port, ...others]) {
    if (port === undefined) return client.destroy();
    const gateway = net.connect(port, "127.0.0.1", () => client.pipe(gateway).pipe(client));
    gateway.on("error", () => (gateway.connecting || gateway.bytesRead === 0 ? lead(client, others) : client.destroy()));
    client.on("error", () => gateway.destroy());
  }' "$site" "$one" "$two"
until_works "gateway-1" curl -fsS "http://127.0.0.1:$operations_one/readyz"
until_works "gateway-2" curl -fsS "http://127.0.0.1:$operations_two/readyz"
key=$("${trunkline[@]}" keys issue --name try --quiet)
echo "$TRUNKLINE_PUBLIC_URL/v1, API key $key"

say "Two machines, paired by one line each"
pair() { # pair <name> <its model>
  "${trunkline[@]}" machines pair "$1" --json |
    node_modules/.bin/node -pe 'JSON.parse(require("node:fs").readFileSync(0)).join' > "$folder/$1.join"
  start "$1" env -i PATH="$PATH" HOME="$folder" TRUNKLINE_STATE_DIR="$folder/$1" TRUNKLINE_RUNTIME=scripted \
    TRUNKLINE_SCRIPTED_MODELS="$2" "${trunkline[@]}" agent --join-file "$folder/$1.join"
}
pair attic scripted
pair cellar scripted:plain

chat() { # chat <port> <model>
  curl -fsS "http://127.0.0.1:$1/v1/chat/completions" -H "Authorization: Bearer $key" -H "Content-Type: application/json" \
    -d "{\"model\":\"$2\",\"messages\":[{\"role\":\"user\",\"content\":\"script tokens=3\"}]}"
}
shown_chat() { # shown_chat <name of its gateway> <port> <model>
  local content
  until_works "a chat with $3 through $1" chat "$2" "$3"
  content=$(node_modules/.bin/node -pe 'JSON.parse(require("node:fs").readFileSync(0)).choices[0].message.content' < "$folder/answer")
  printf '%-9s  %-14s  %s\n' "$1" "$3" "$content"
}
say "Each gateway serves each machine"
for model in scripted scripted:plain; do
  shown_chat gateway-1 "$one" "$model"
  shown_chat gateway-2 "$two" "$model"
done

say "kill -9 of gateway-1: the other one serves both machines"
kill -KILL "${pids[gateway-1]}"
wait "${pids[gateway-1]}" 2> /dev/null || true
unset 'pids[gateway-1]'
for model in scripted scripted:plain; do shown_chat gateway-2 "$two" "$model"; done

if [[ $keep == --keep ]]; then
  say "It runs on: $TRUNKLINE_PUBLIC_URL/v1 with the key above. Ctrl-C ends it."
  wait "${pids[gateway-2]}"
fi
say "It works. Everything is stopped and removed."
