import type { z } from "zod";
import type { ShownSetting } from "#shared/admin/site-operations.ts";
import { type Environment, isSecret, variableOf } from "#shared/process/config.ts";

/**
 * Returns the settings that a process was configured with, without the values of secrets. A secret that no variable has
 * comes from a file.
 */
export function showSettings<Schema extends z.ZodObject>(
  schema: Schema,
  environment: Environment,
  config: z.output<Schema>,
): readonly ShownSetting[] {
  return Object.entries<z.ZodType>(schema.shape).map(([setting, field]) => {
    const name = variableOf(setting);
    const value = (config as Readonly<Record<string, unknown>>)[setting];
    const [given, isHidden] = [environment[name], isSecret(field)];
    const source = given ? "environment" : isHidden && value !== undefined ? "file" : "default";
    // A default is a switch, a number, a text, or an empty list.
    const plain = typeof value === "number" || typeof value === "string" ? String(value) : "";
    const usual = typeof value === "boolean" ? (value ? "on" : "off") : plain;
    const text = given || usual;
    return { name, value: isHidden || text === "" ? null : withoutPassword(text), source, secret: isHidden };
  });
}

/** Returns a text without the users and passwords of its URLs. */
function withoutPassword(text: string): string {
  return text.replace(/:\/\/[^/?#\s]*@/g, "://");
}
