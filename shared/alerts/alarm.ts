/** The kinds of things that can be wrong with a site, of which an alert target may be told. */
export const alarmKinds = [
  "machine-away",
  "budget",
  "keep-unmet",
  "errors",
  "certificate",
  "disk",
  "gateway-away",
] as const;
export type AlarmKind = (typeof alarmKinds)[number];

/** One thing that is wrong with the site. Times are milliseconds since 1970. */
export interface Alarm {
  /** Names the kind, the subject and the beginning; it stays the same until the alarm is over. */
  readonly id: string;
  readonly kind: AlarmKind;
  /** The thing that is affected, such as the name of a machine. */
  readonly subject: string;
  readonly beganAt: number;
  /** One plain sentence. */
  readonly text: string;
}

/** One call of one target. */
export interface AlarmCall {
  /** The `webhook-id`, which is the same each time that the call is sent. */
  readonly id: string;
  readonly state: "began" | "over" | "test";
  readonly alarm: Alarm;
  readonly at: number;
}
