const bearer = /^bearer (\S+)$/i;

/** Returns the token of a Bearer Authorization header; undefined for any other header. */
export function bearerText(authorization: string | undefined): string | undefined {
  return bearer.exec(authorization ?? "")?.[1];
}
