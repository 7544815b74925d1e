#!/bin/sh
# Makes a private certificate authority and NATS' certificate, in nats-tls/ beside this file (or in $NATS_TLS_DIR):
#
#   infra/nats-ca.sh nats.example.com 192.168.1.5
#
# The arguments are the names and addresses under which machines elsewhere reach NATS. The names of compose.yaml and of
# this host's loopback are always included. Run again with other names, it makes another certificate with the same
# authority, so processes that have ca.pem go on. Then restart NATS. Both are valid for ten years.
#
#   ca.pem       for every gateway and agent (TRUNKLINE_NATS_CA); not secret
#   ca.key       signs certificates: keep it away from the broker, or delete it once all is made
#   server.pem   the certificate of NATS
#   server.key   its private key
set -eu
umask 077
folder=${NATS_TLS_DIR:-$(dirname "$0")/nats-tls}
days=3650
mkdir -p "$folder"
chmod 755 "$folder"
cd "$folder"

names=DNS:nats,DNS:localhost,IP:127.0.0.1,IP:::1
for name in "$@"; do
  case $name in
    *[!0-9A-Za-z.:-]*) echo "nats-ca.sh: '$name' is neither a host name nor an IP address" >&2; exit 64 ;;
    *:* | *[0-9].[0-9]*.[0-9]*.[0-9]*) names=$names,IP:$name ;;
    *) names=$names,DNS:$name ;;
  esac
done

new_key() { openssl ecparam -name prime256v1 -genkey -noout -out "$1"; }

# A configuration of our own, so that whatever the host's openssl.cnf adds stays out.
config=$(mktemp)
trap 'rm -f "$config" server.csr' EXIT
cat > "$config" <<END
[req]
distinguished_name = name
prompt = no
[name]
CN = Trunkline NATS
[authority]
basicConstraints = critical, CA:TRUE, pathlen:0
keyUsage = critical, keyCertSign
subjectKeyIdentifier = hash
[server]
basicConstraints = critical, CA:FALSE
keyUsage = critical, digitalSignature
extendedKeyUsage = serverAuth
subjectAltName = $names
END

if [ ! -f ca.pem ]; then
  new_key ca.key
  openssl req -x509 -new -key ca.key -sha256 -days "$days" -config "$config" -extensions authority -out ca.pem
fi
new_key server.key
openssl req -new -key server.key -config "$config" -out server.csr
openssl x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -sha256 -days "$days" \
  -extfile "$config" -extensions server -out server.pem 2> /dev/null
rm -f ca.srl
chmod 644 ca.pem server.pem
echo "Certificate for $names in $(pwd)"
