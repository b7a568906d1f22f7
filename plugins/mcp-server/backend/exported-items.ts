import { findNearest, suggest } from 'svc/internal'
import { isObject, Refusal } from 'svc/sdk'
import type { McpContents, McpObject, McpPrompt, McpPromptProvider, McpRequester } from '../contract.ts'
import type { ExportRegistry } from '../exports.ts'
import { pageOf } from './pages.ts'

const MAX_COMPLETIONS = 100

/** Resources and prompts of all providers, as MCP asks for them. */
export class ExportedItems {
  readonly #exports: ExportRegistry
  readonly #pageSize: number
  constructor(exports: ExportRegistry, pageSize: number) {
    this.#exports = exports
    this.#pageSize = pageSize
  }

  async listResources(params: McpObject, requester: McpRequester): Promise<McpObject> {
    const lists = await Promise.all([...this.#exports.resourceProviders].map((each) => each.list?.(requester) ?? []))
    return pageOf('resources', lists.flat(), params, this.#pageSize)
  }
  listTemplates(params: McpObject): McpObject {
    const templates = [...this.#exports.resourceProviders].flatMap((each) => each.templates ?? [])
    return pageOf('resourceTemplates', templates, params, this.#pageSize)
  }
  async read(uri: string, requester: McpRequester): Promise<readonly McpContents[]> {
    for (const provider of this.#exports.resourceProviders) {
      const contents = await provider.read(uri, requester)
      if (contents) return contents
    }
    throw new Refusal('invalid_request', `Resource not found: ${uri.slice(0, 500)}`, { details: { uri } })
  }

  async listPrompts(params: McpObject, requester: McpRequester): Promise<McpObject> {
    const prompts = [...(await this.#prompts(requester)).values()].map(({ prompt }) => prompt)
    return pageOf('prompts', prompts, params, this.#pageSize)
  }
  async getPrompt(name: string, args: McpObject, requester: McpRequester): Promise<McpObject> {
    const { prompt, provider } = await this.#prompt(name, requester)
    const texts: Record<string, string> = {}
    for (const [key, value] of Object.entries(args)) texts[key] = String(value)
    const missing = (prompt.arguments ?? []).filter((each) => each.required && texts[each.name] === undefined)
    if (missing.length > 0)
      throw new Refusal(
        'invalid_request',
        `The prompt "${name}" needs the arguments ${missing.map((each) => each.name).join(', ')}`,
      )
    return provider.get(name, texts, requester)
  }

  async complete({ ref, argument, context }: McpObject, requester: McpRequester): Promise<McpObject> {
    if (!isObject(ref) || !isObject(argument)) throw new Refusal('invalid_request', 'ref and argument are objects')
    const completion = {
      argument: { name: String(argument['name']), value: String(argument['value']) },
      known: knownOf(context),
    }
    let values: readonly string[] = []
    if (ref['type'] === 'ref/prompt') {
      const { provider } = await this.#prompt(String(ref['name']), requester)
      values = (await provider.complete?.(String(ref['name']), completion, requester)) ?? []
    } else {
      const uri = String(ref['uri'])
      for (const provider of this.#exports.resourceProviders)
        if (provider.templates?.some(({ uriTemplate }) => uriTemplate === uri))
          values = (await provider.complete?.(uri, completion, requester)) ?? []
    }
    const fitting = values.filter((value) => value.startsWith(completion.argument.value))
    return {
      completion: {
        values: fitting.slice(0, MAX_COMPLETIONS),
        total: fitting.length,
        hasMore: fitting.length > MAX_COMPLETIONS,
      },
    }
  }

  async #prompts(
    requester: McpRequester,
  ): Promise<ReadonlyMap<string, { readonly prompt: McpPrompt; readonly provider: McpPromptProvider }>> {
    const found = new Map<string, { readonly prompt: McpPrompt; readonly provider: McpPromptProvider }>()
    for (const provider of this.#exports.promptProviders)
      for (const prompt of await provider.list(requester))
        if (!found.has(prompt.name)) found.set(prompt.name, { prompt, provider })
    return found
  }
  async #prompt(name: string, requester: McpRequester) {
    const prompts = await this.#prompts(requester)
    const found = prompts.get(name)
    if (found) return found
    throw new Refusal('invalid_request', `Unknown prompt: ${name}${suggest(findNearest(name, prompts.keys())) || '.'}`)
  }
}

function knownOf(context: unknown): Readonly<Record<string, string>> {
  const args = isObject(context) && isObject(context['arguments']) ? context['arguments'] : {}
  return Object.fromEntries(Object.entries(args).map(([name, value]) => [name, String(value)]))
}
