/** Whether the capabilities of an agent name this tool: by name, `*`, or a prefix such as `mcp_github_*`. */
export function granted(patterns: readonly string[], tool: string): boolean {
  return patterns.some((pattern) => pattern === tool || (pattern.endsWith('*') && tool.startsWith(pattern.slice(0, -1))))
}
