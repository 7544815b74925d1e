/** Returns true if the subject matches the pattern: `*` is one token, a final `>` is one token or more. */
export function subjectMatches(pattern: string, subject: string): boolean {
  const wanted = pattern.split(".");
  const given = subject.split(".");
  for (const [place, token] of wanted.entries()) {
    if (token === ">") return given.length > place;
    if (place >= given.length) return false;
    if (token !== "*" && token !== given[place]) return false;
  }
  return wanted.length === given.length;
}
