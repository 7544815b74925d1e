/** Thrown for a JSON schema that a grammar cannot express. */
export class UnsupportedSchema extends Error {
  override readonly name = "UnsupportedSchema";
}

type Schema = Readonly<Record<string, unknown>>;

/** Keywords that restrict no value here, or that are read where a `$ref` names them. */
const annotations = new Set(
  "title description default examples $schema $id $comment $defs definitions deprecated readOnly writeOnly format".split(
    " ",
  ),
);

const basics = `space ::= | " " | "\\n" [ \\t]{0,20}
value ::= object | array | string | number | boolean | null
object ::= "{" space (string space ":" space value (space "," space string space ":" space value)*)? space "}"
array ::= "[" space (value (space "," space value)*)? space "]"
string ::= "\\"" char* "\\""
char ::= [^"\\\\\\x7F\\x00-\\x1F] | "\\\\" (["\\\\/bfnrt] | "u" [0-9a-fA-F]{4})
number ::= integer ("." [0-9]{1,16})? ([eE] [-+]? [0-9]{1,4})?
integer ::= "-"? ("0" | [1-9] [0-9]{0,15})
boolean ::= "true" | "false"
null ::= "null"`;

/**
 * Writes grammars (GBNF) for JSON. A grammar admits nothing that its schema does not admit. `JsonGrammar` refuses a
 * schema that it cannot express, so that no part of a schema is silently dropped.
 */
export class JsonGrammar {
  readonly #rules = new Map<string, string>();
  readonly #byReference = new Map<string, string>();

  /** All rules that a result of `of` refers to. A grammar must include them. */
  get text(): string {
    return [basics, ...[...this.#rules].map(([name, body]) => `${name} ::= ${body}`)].join("\n");
  }

  /** Returns the rule for the values that a schema admits. */
  of(schema: unknown, root: unknown = schema): string {
    if (schema === undefined || schema === true) return "value";
    if (!isSchema(schema)) throw new UnsupportedSchema("a schema that is not an object");
    const keys = Object.keys(schema).filter((key) => !annotations.has(key));
    const only = (...known: string[]): void => {
      const other = keys.find((key) => !known.includes(key));
      if (other !== undefined) throw new UnsupportedSchema(`'${other}'`);
    };
    if (typeof schema["$ref"] === "string") {
      only("$ref");
      return this.#reference(schema["$ref"], root);
    }
    if ("const" in schema) {
      only("const", "type");
      return literal(JSON.stringify(schema["const"]));
    }
    if (Array.isArray(schema["enum"])) {
      only("enum", "type");
      return this.#rule(schema["enum"].map((each) => literal(JSON.stringify(each))).join(" | "));
    }
    const alternatives = schema["anyOf"] ?? schema["oneOf"] ?? schema["allOf"];
    if (Array.isArray(alternatives)) {
      only("anyOf" in schema ? "anyOf" : "oneOf" in schema ? "oneOf" : "allOf");
      if ("allOf" in schema && alternatives.length > 1) throw new UnsupportedSchema("'allOf'");
      return this.#rule(alternatives.map((each) => this.of(each, root)).join(" | "));
    }
    if (Array.isArray(schema["type"])) {
      return this.#rule(schema["type"].map((type) => this.of(narrowed(schema, type), root)).join(" | "));
    }
    switch (schema["type"] ?? impliedType(schema)) {
      case "object":
        only("type", "properties", "required", "additionalProperties");
        return this.#object(schema, root);
      case "array":
        only("type", "items", "minItems", "maxItems");
        return this.#array(schema, root);
      case "string":
        only("type", "minLength", "maxLength");
        return this.#rule(`"\\"" char${times(schema["minLength"], schema["maxLength"])} "\\""`);
      case "number":
      case "integer":
      case "boolean":
      case "null":
        only("type");
        return String(schema["type"]);
      case undefined:
        only();
        return "value";
      default:
        throw new UnsupportedSchema(`the type '${String(schema["type"])}'`);
    }
  }

  #object(schema: Schema, root: unknown): string {
    const properties = isSchema(schema["properties"]) ? schema["properties"] : {};
    const required = Array.isArray(schema["required"]) ? schema["required"].map(String) : [];
    const undeclared = required.filter((name) => !Object.hasOwn(properties, name));
    const others = schema["additionalProperties"] ?? true;
    if (undeclared.length > 0 && others === false) throw new UnsupportedSchema("'required' of what may not be there");
    const members = [
      ...Object.entries(properties).map(([name, each]) => ({ name, rule: this.of(each, root) })),
      ...undeclared.map((name) => ({ name, rule: this.of(others, root) })),
    ].map(({ name, rule }) => ({
      text: `${literal(JSON.stringify(name))} space ":" space ${rule}`,
      isRequired: required.includes(name),
    }));
    if (members.length > 0) return this.#rule(`"{" space ${this.#members(members, 0, true)} space "}"`);
    if (others === false) return this.#rule(`"{" space "}"`);
    const member = `string space ":" space ${this.of(others, root)}`;
    return this.#rule(`"{" space (${member} (space "," space ${member})*)? space "}"`);
  }

  /** Returns the rule for the members from `at` on, in their declared order; optional members may be missing. */
  #members(members: readonly { text: string; isRequired: boolean }[], at: number, isFirst: boolean): string {
    const member = members[at];
    if (member === undefined) return `""`;
    const present = `${isFirst ? "" : `space "," space `}${member.text} ${this.#members(members, at + 1, false)}`;
    return this.#rule(member.isRequired ? present : `${present} | ${this.#members(members, at + 1, isFirst)}`);
  }

  #array(schema: Schema, root: unknown): string {
    const item = this.of(schema["items"], root);
    const least = countOf(schema["minItems"]) ?? 0;
    const most = countOf(schema["maxItems"]);
    if (most === 0) return this.#rule(`"[" space "]"`);
    const more = times(Math.max(least - 1, 0), most === undefined ? undefined : most - 1);
    const items = `${item} (space "," space ${item})${more}`;
    return this.#rule(`"[" space ${least === 0 ? `(${items})?` : items} space "]"`);
  }

  /** Returns one rule for each `$ref`, so that a schema may contain itself. */
  #reference(reference: string, root: unknown): string {
    const known = this.#byReference.get(reference);
    if (known !== undefined) return known;
    const path = reference.split("/").slice(1).map(unescaped);
    const named = path.reduce<unknown>((inside, key) => (isSchema(inside) ? inside[key] : undefined), root);
    if (!reference.startsWith("#") || named === undefined) throw new UnsupportedSchema(`the '$ref' ${reference}`);
    const name = this.#nextName();
    this.#byReference.set(reference, name);
    this.#rules.set(name, "");
    this.#rules.set(name, this.of(named, root));
    return name;
  }

  #rule(body: string): string {
    const same = [...this.#rules].find(([, known]) => known === body)?.[0];
    const name = same ?? this.#nextName();
    this.#rules.set(name, body);
    return name;
  }

  #nextName(): string {
    return `rule-${this.#rules.size}`;
  }
}

/** Quotes a text for a grammar. */
export function literal(text: string): string {
  return JSON.stringify(text);
}

function times(least: unknown, most: unknown): string {
  const [from, to] = [countOf(least) ?? 0, countOf(most)];
  return from === 0 && to === undefined ? "*" : `{${from},${to ?? ""}}`;
}

function countOf(value: unknown): number | undefined {
  return typeof value === "number" ? value : undefined;
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function impliedType(schema: Schema): string | undefined {
  if ("properties" in schema || "additionalProperties" in schema) return "object";
  return "items" in schema ? "array" : undefined;
}

/** Returns a schema of several types reduced to one of these types. */
function narrowed(schema: Schema, type: unknown): Schema {
  const ofType: Readonly<Record<string, readonly string[]>> = {
    object: ["properties", "required", "additionalProperties"],
    array: ["items", "minItems", "maxItems"],
    string: ["minLength", "maxLength"],
  };
  const others = new Set(Object.entries(ofType).flatMap(([name, keys]) => (name === type ? [] : keys)));
  return Object.fromEntries(Object.entries({ ...schema, type }).filter(([key]) => !others.has(key)));
}

function unescaped(key: string): string {
  return decodeURIComponent(key).replaceAll("~1", "/").replaceAll("~0", "~");
}
