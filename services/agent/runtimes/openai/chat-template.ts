/** Marks that only the templates of models with a thinking mode have. */
const thinking = /<\/?think(ing)?>|<\|think|\[\/?THINK\]|<seed:think>|enable_thinking|reasoning_effort|<\|channel\|?>/;

/** True if the chat template belongs to a thinking model. */
export function templateThinks(template: string): boolean {
  return thinking.test(template);
}

/** True if the chat template can pass tools to the model. */
export function templateTakesTools(template: string): boolean {
  return /\btools\b/.test(template);
}
