// Shows openapi.json in Swagger UI. Examples name the gateway by the URL that the reader's browser used.
const exampleUrl = "https://gateway.example";
const siteUrl = new URL(".", location.href).href.replace(/\/$/, "");
const dark = matchMedia("(prefers-color-scheme: dark)");
const followColorScheme = () => document.documentElement.classList.toggle("dark-mode", dark.matches);

const response = await fetch("openapi.json");
const spec = JSON.parse((await response.text()).replaceAll(exampleUrl, siteUrl), withoutSafeBounds);
spec.info.description += [
  table("All errors", ["Status", "Code", "Meaning", "Clients retry"], spec["x-trunkline-errors"].map(errorRow)),
  table("All limits", ["Name", "At most", "Applies to"], spec["x-trunkline-limits"].map(limitRow)),
  table(
    "All headers of answers",
    ["Name", "Meaning", "Example"],
    Object.entries(spec.components.headers).map(headerRow),
  ),
].join("");
followColorScheme();
dark.addEventListener("change", followColorScheme);
SwaggerUIBundle({
  spec,
  dom_id: "#viewer",
  deepLinking: true,
  validatorUrl: null,
  requestSnippetsEnabled: true,
  defaultModelsExpandDepth: 0,
});

function table(title, head, rows) {
  const lines = [head, head.map(() => "---"), ...rows].map((cells) => `| ${cells.join(" | ")} |`);
  return `\n\n<details><summary>${title}</summary>\n\n${lines.join("\n")}\n\n</details>`;
}

function errorRow({ status, code, meaning, retried }) {
  return [status, code === null ? "null" : `\`${code}\``, meaning, retried ? "yes" : "no"];
}

function limitRow({ name, value, unit, meaning }) {
  return [`\`${name}\``, `${value.toLocaleString("en-US")} ${unit}`, meaning];
}

function headerRow([name, { description, example }]) {
  return [`\`${name}\``, description, `\`${example}\``];
}

/** Drops the bounds that every whole number has: they would fill the examples with 9007199254740991. */
function withoutSafeBounds(_, value) {
  return Math.abs(value) === Number.MAX_SAFE_INTEGER ? undefined : value;
}
