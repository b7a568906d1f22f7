/** The manifest of a new agent (Interface 2.1). `tools`: whether it may use every tool there is, or none. */
export function manifestToml(agent: {
  readonly name: string
  readonly systemPrompt: string
  readonly tools: boolean
}): string {
  return `name = ${tomlString(agent.name)}
module = "builtin:chat"

[model]
provider = "default"
model = "default"
system_prompt = ${tomlString(agent.systemPrompt)}

[capabilities]
tools = ${agent.tools ? '["*"]' : '[]'}
memory_read = ["self.*"]
memory_write = ["self.*"]
`
}

// A JSON string is a TOML basic string but for DEL, which TOML wants escaped, and halves of surrogate pairs, which it
// refuses.
function tomlString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007F')
}
