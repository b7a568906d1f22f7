import * as v from 'valibot'

export const text = (max: number) => v.pipe(v.string('must be a text'), v.maxLength(max, `at most ${max} characters`))
export const some = (max: number) => v.pipe(text(max), v.minLength(1, 'must not be empty'))
export const texts = v.optional(
  v.pipe(v.array(text(256), 'must be a list of texts'), v.maxLength(100, 'at most 100')),
  [],
)
export const flag = v.optional(v.boolean('must be true or false'), false)
export const whole = (min: number, max: number) =>
  v.pipe(
    v.number('must be a number'),
    v.integer('must be a whole number'),
    v.minValue(min, `must be ${min} at least`),
    v.maxValue(max, `must be ${max} at most`),
  )
export const Key = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Za-z][\w.-]{0,63}$/, 'must be letters, digits, "_", "-" and "."'),
)
export const Variable = v.pipe(
  v.string('must be a text'),
  v.regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, 'must be the name of a variable'),
)
/** What it may reach beside its tools; not in the format of other systems. An absent list grants nothing. */
export const Capabilities = v.object({ network: texts, shell: texts, agent_message: texts })

/** `[agent]` of a definition. */
export const Agent = v.object({
  name: v.pipe(some(128), v.regex(/^[^\p{Cc}]+$/u, 'must be one line')),
  description: v.optional(text(4096), ''),
  module: v.optional(text(128), 'builtin:chat'),
  provider: v.optional(some(256), 'default'),
  model: v.optional(some(256), 'default'),
  api_key_env: v.optional(Variable),
  base_url: v.optional(text(2048)),
  max_tokens: v.optional(whole(1, 1_000_000), 4096),
  temperature: v.optional(v.pipe(v.number('must be a number'), v.minValue(0), v.maxValue(2, 'must be 2 at most')), 0.7),
  system_prompt: v.pipe(some(60_000), v.regex(/\S/, 'must not be empty')),
  max_iterations: v.optional(whole(1, 1000), 40),
  heartbeat_interval_secs: v.optional(whole(60, 86_400)),
})
