/** The manifest of a new agent (Interface 2.1). `tools`: whether it may use all tools, or none. */
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

// A JSON string is a valid TOML basic string, except for DEL, which TOML requires escaped, and lone surrogates, which
// it refuses.
function tomlString(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll('\u007f', '\\u007F')
}
