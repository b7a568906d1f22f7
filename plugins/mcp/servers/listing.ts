import { isObject } from 'svc/sdk'
import type { Settings } from '../config.ts'
import type { Session } from '../connection/session.ts'
import type { McpObject, McpTool } from '../contract.ts'
import type { Listing } from './store.ts'

const MAX_NAME_CHARS = 512
const MAX_INSTRUCTIONS_CHARS = 16_384

/** What a server says of itself and its tools, within the limits of the configuration. */
export async function readListing(session: Session, settings: Settings, signal: AbortSignal): Promise<Listing> {
  const tools = await session.readTools(signal)
  return {
    serverInfo: shortInfo(session.serverInfo),
    protocolVersion: session.protocolVersion.slice(0, 32),
    instructions: session.instructions?.slice(0, MAX_INSTRUCTIONS_CHARS),
    capabilities: Object.fromEntries(
      Object.keys(session.capabilities)
        .slice(0, 32)
        .map((key) => [key, {}]),
    ),
    tools: unique(tools).flatMap((tool) => bound(tool, settings)),
  }
}

const shortInfo = ({ name, title, version }: McpObject): McpObject =>
  Object.fromEntries(
    Object.entries({ name, title, version }).flatMap(([key, value]) =>
      typeof value === 'string' ? [[key, value.slice(0, 200)]] : [],
    ),
  )

/** A second tool with the same name cannot be called. */
function unique(tools: readonly McpTool[]): readonly McpTool[] {
  const names = new Set<string>()
  return tools.filter(({ name }) => !names.has(name) && names.add(name))
}

function bound(
  { name, title, description, inputSchema, outputSchema, annotations }: McpTool,
  settings: Settings,
): McpTool[] {
  if (name.length > MAX_NAME_CHARS) return []
  const size = JSON.stringify([inputSchema, outputSchema]).length
  if (size > settings.max_schema_bytes) return []
  return [
    {
      name,
      inputSchema: isObject(inputSchema) ? inputSchema : { type: 'object' },
      ...(title !== undefined && { title: title.slice(0, 200) }),
      ...(description !== undefined && { description: description.slice(0, settings.max_description_chars) }),
      ...(isObject(outputSchema) && { outputSchema }),
      ...(isObject(annotations) && { annotations: flags(annotations) }),
    },
  ]
}
const flags = (annotations: McpObject): McpObject =>
  Object.fromEntries(
    Object.entries(annotations).filter(([key, value]) => typeof value === 'boolean' && key.endsWith('Hint')),
  )
