/** The page's script: it shows the gateway's URL as the browser reached it, through any proxies, and copies code. */
export const docsScript = `
const base = new URL("v1", location.href).href;
for (const each of document.querySelectorAll("[data-base]")) each.textContent = base;
for (const figure of document.querySelectorAll("figure")) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(figure.querySelector("code").textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 1500);
  });
  if (navigator.clipboard) figure.querySelector("figcaption").append(button);
}
if (matchMedia("(max-width: 60rem)").matches) document.querySelector("nav details").open = false;
`;
