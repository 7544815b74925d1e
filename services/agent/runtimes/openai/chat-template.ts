/** Marks that only the templates of models with a thinking mode have. */
const thinking = /<\/?think(ing)?>|<\|think|\[\/?THINK\]|<seed:think>|enable_thinking|reasoning_effort|<\|channel\|?>/;

/** Whether a chat template is one of a model that thinks. */
export function templateThinks(template: string): boolean {
  return thinking.test(template);
}

/** Whether a chat template can tell the model of tools. */
export function templateTakesTools(template: string): boolean {
  return /\btools\b/.test(template);
}
