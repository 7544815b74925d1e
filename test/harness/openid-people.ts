import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { Provider } from "oidc-provider";
import { freePort } from "./free-port.ts";

/** An OpenID provider that signs people in without a question, with the claims that a test gives them. */
export class OpenIdPeople implements AsyncDisposable {
  readonly issuer: string;
  /** The claims of people by their subjects. */
  readonly claims = new Map<string, Readonly<Record<string, unknown>>>();
  readonly #server: Server;
  #next = "";

  private constructor(port: number, redirectUris: readonly string[]) {
    this.issuer = `http://127.0.0.1:${port}`;
    const provider = new Provider(this.issuer, {
      clients: [{ client_id: "console", client_secret: "a secret of the client", redirect_uris: [...redirectUris] }],
      claims: { openid: ["sub", "groups"], email: ["email", "email_verified"] },
      conformIdTokenClaims: false,
      features: { devInteractions: { enabled: false } },
      interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...this.claims.get(id) }) }),
      loadExistingGrant: async ({ oidc }) => {
        const grant = new oidc.provider.Grant({
          clientId: oidc.client?.clientId ?? "",
          accountId: oidc.session?.accountId ?? "",
        });
        grant.addOIDCScope("openid profile email");
        await grant.save();
        return grant;
      },
      cookies: { keys: ["a key for cookies"] },
    });
    const answer = provider.callback();
    this.#server = createServer((request, response) => {
      if (request.url?.startsWith("/interaction/"))
        void provider.interactionFinished(request, response, { login: { accountId: this.#next } });
      else void answer(request, response);
    }).listen(port, "127.0.0.1");
  }

  static async start(...redirectUris: readonly string[]): Promise<OpenIdPeople> {
    const people = new OpenIdPeople(await freePort(), redirectUris);
    await once(people.#server, "listening");
    return people;
  }

  /** The settings of a gateway whose people these are. */
  get settings() {
    return {
      TRUNKLINE_OIDC_ISSUER: this.issuer,
      TRUNKLINE_OIDC_CLIENT_ID: "console",
      TRUNKLINE_OIDC_CLIENT_SECRET: "a secret of the client",
    };
  }

  /** The person whom a browser that comes next is. */
  expect(subject: string): void {
    this.#next = subject;
  }

  /** Follows an authorization URL as the browser of a person, and returns where the provider sends it back to. */
  async signIn(authorizationUrl: string, subject: string): Promise<URL> {
    this.expect(subject);
    const jar = new Map<string, string>();
    for (let url = new URL(authorizationUrl); ;) {
      const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
      const { headers, status, ...answer } = await fetch(url, { redirect: "manual", headers: { cookie } });
      const location = headers.get("location");
      if (location === null) throw new Error(`the provider answered ${status}: ${JSON.stringify(answer)}`);
      for (const [, name = "", value = ""] of headers.getSetCookie().map((each) => /^([^=]+)=([^;]*)/.exec(each) ?? []))
        jar.set(name, value);
      url = new URL(location, url);
      if (url.origin !== this.issuer) return url;
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
