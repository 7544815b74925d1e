import type { Clock } from "../process/clock.ts";
import { Nkey } from "../protocol/nkey.ts";
import { gatewayGrants, type Grants, machineGrants } from "../protocol/subjects.ts";
import { type Claims, credsText, permissions, signClaims } from "./nats-credentials.ts";

/** All that a site needs to run NATS in operator mode: public keys, and files by their names. */
export interface NatsSite {
  readonly operator: string;
  readonly account: string;
  readonly systemAccount: string;
  readonly files: Readonly<Record<NatsSiteFile, string>>;
}

/** In the order in which they are written: a folder with `nats.conf` has all of them. */
export const natsSiteFiles = ["operator.seed", "machines.seed", "gateway.creds", "system.creds", "nats.conf"] as const;
export type NatsSiteFile = (typeof natsSiteFiles)[number];

/**
 * The user of the system account watches connections, and pushes accounts that the operator has signed. Without the
 * operator's key it can change nothing.
 */
const systemGrants: Grants = {
  publish: ["$SYS.REQ.CLAIMS.UPDATE", "$SYS.REQ.ACCOUNT.*.CLAIMS.LOOKUP"],
  subscribe: ["$SYS.ACCOUNT.*.CONNECT", "_INBOX.>"],
};

/** -1 stands for no limit. A bearer token would let its reader in without the key. */
const accountLimits = {
  subs: -1,
  data: -1,
  payload: -1,
  imports: -1,
  exports: -1,
  wildcards: true,
  conn: -1,
  leaf: 0,
  disallow_bearer: true,
};

/**
 * A NATS server that starts keeps whichever is of the later date: the account in its configuration, or the one that was
 * pushed to it. So the first one has the earliest date, and no revocation is undone, whatever clock dated it.
 */
const firstIssuedAt = 1;

/**
 * Makes the operator of a site, its account with a role for machines and one for gateways, and the system account. The
 * keys of both accounts and of the gateways' role are not kept: the operator's key can sign the accounts anew.
 */
export function makeNatsSite(clock: Pick<Clock, "wall">): NatsSite {
  const operator = Nkey.make("O");
  const [account, systemAccount] = [Nkey.make("A"), Nkey.make("A")];
  const [machines, gateways] = [Nkey.make("A"), Nkey.make("A")];
  const [gateway, watch] = [Nkey.make("U"), Nkey.make("U")];
  const issuedAt = Math.floor(clock.wall() / 1_000);
  const roles = [role("machine", machines, machineGrants("{{name()}}")), role("gateway", gateways, gatewayGrants)];

  const operatorClaims = { type: "operator", system_account: systemAccount.publicKey } as const;
  const operatorJwt = signClaims(claimsOf(operator, "trunkline", operatorClaims), operator, issuedAt);
  const accountClaims = { type: "account", limits: accountLimits, signing_keys: roles } as const;
  const accountJwt = signClaims(claimsOf(account, "trunkline", accountClaims), operator, firstIssuedAt);
  const systemClaims = { type: "account", limits: accountLimits } as const;
  const systemJwt = signClaims(claimsOf(systemAccount, "system", systemClaims), operator, firstIssuedAt);
  const gatewayClaims = { type: "user", issuer_account: account.publicKey } as const;
  const gatewayJwt = signClaims(claimsOf(gateway, "gateway", gatewayClaims), gateways, issuedAt);
  const watchClaims = { type: "user", ...permissions(systemGrants) } as const;
  const watchJwt = signClaims(claimsOf(watch, "watch", watchClaims), systemAccount, issuedAt);

  const accounts = { [account.publicKey]: accountJwt, [systemAccount.publicKey]: systemJwt };
  return {
    operator: operator.publicKey,
    account: account.publicKey,
    systemAccount: systemAccount.publicKey,
    files: {
      "operator.seed": `${operator.seed}\n`,
      "machines.seed": `${machines.seed}\n`,
      "gateway.creds": credsText(gatewayJwt, gateway),
      "system.creds": credsText(watchJwt, watch),
      "nats.conf": configuration(operatorJwt, systemAccount.publicKey, accounts),
    },
  };
}

function claimsOf({ publicKey: sub }: Nkey, name: string, nats: Claims["nats"]): Claims {
  return { sub, name, nats };
}

function role(name: string, signer: Nkey, grants: Grants): object {
  return { kind: "user_scope", key: signer.publicKey, role: name, template: permissions(grants) };
}

function configuration(operatorJwt: string, systemAccount: string, accounts: Record<string, string>): string {
  const preload = Object.entries(accounts).map(([account, jwt]) => `  ${account}: ${jwt}\n`);
  return `# NATS for Trunkline in operator mode, made by \`trunkline nats init\`: the broker between gateways and machines.
# Production wants 2.12.7 or newer: earlier servers have published ways around their authorisation.
# It needs three variables: NATS_TLS_CERT and NATS_TLS_KEY, the files of its certificate, and NATS_JWT_DIR, a folder that
# is kept. NATS writes the accounts there, with the revoked keys of machines.

server_name: trunkline
listen: "0.0.0.0:4222"
# The monitoring port names every connection, so it is for this host only.
http: "127.0.0.1:8222"

# A gateway that stands still would otherwise hold up the machines that send to it for ten seconds.
write_deadline: "2s"
# A peer that is gone without a word is noticed within 4 s, and «no responders» is true again.
ping_interval: "1s"
ping_max: 2
# Bodies above this cross in parts; larger messages would only delay the messages behind them.
max_payload: 1MB
# The most that one slow connection may leave here before it is cut: seconds of all streams of a gateway.
max_pending: 32MB
# There is no JetStream, on purpose: a stream or any other tap on tl1.> would count as a subscriber of machines that are
# gone.

tls {
  cert_file: $NATS_TLS_CERT
  key_file: $NATS_TLS_KEY
}

# The operator signs accounts, and the account says what machines and gateways may do. A machine's user is made when the
# machine connects, so pairing, renaming and revoking change nothing here.
operator: ${operatorJwt}
system_account: ${systemAccount}
resolver {
  type: full
  dir: $NATS_JWT_DIR
  allow_delete: false
}
resolver_preload {
${preload.join("")}}
`;
}
