const bearer = /^bearer (\S+)$/i;

/** What an Authorization header presents as a key. */
export function bearerText(authorization: string | undefined): string | undefined {
  return bearer.exec(authorization ?? "")?.[1];
}
