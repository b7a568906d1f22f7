import { commandLine } from 'svc/sdk'

/** What the operator of a server with a login can do, after its name. */
export const loginAdvice = (server: string): string => `wants a login: ${commandLine(`mcp login ${server}`)}`
