import { findNearest, suggest } from 'svc/internal'
import { defineRoute, Refusal, UpstreamFailure } from 'svc/sdk'
import type { AnyRoute } from 'svc/sdk'
import type { Connections } from './connection.ts'
import type { Ollama } from './ollama.ts'
import { Detection, ProviderParams } from './schema.ts'

/** Detects model servers on this machine at their usual addresses (Interface 4.6). */
export function detectRoutes({
  connections,
  ollama,
  detectMs,
}: {
  readonly connections: Connections
  readonly ollama: Ollama
  readonly detectMs: number
}): readonly AnyRoute[] {
  const ollamaThere = defineRoute({
    method: 'GET',
    path: '/api/providers/ollama/detect',
    summary: 'Detect a local Ollama and its models',
    auth: 'bearer',
    effect: 'read',
    cost: 20,
    returns: Detection,
    async handle() {
      const { available, models } = await ollama.detect()
      return { available, models: [...models] }
    },
  })

  const there = defineRoute({
    method: 'GET',
    path: '/api/providers/:name/detect',
    summary: 'Detect a local model server and its models',
    auth: 'bearer',
    effect: 'read',
    cost: 20,
    description: 'For providers without a key, such as vllm and lmstudio.',
    params: ProviderParams,
    returns: Detection,
    errors: ['provider_not_found', 'invalid_request'],
    async handle({ params: { name }, signal }) {
      const entry = connections.driver(name)
      if (!entry)
        throw new Refusal(
          'provider_not_found',
          `Provider '${name}' not found${suggest(findNearest(name, connections.names()))}`,
        )
      if (entry.driver.envVar !== undefined || connections.baseUrl(name) === undefined)
        throw new Refusal(
          'invalid_request',
          `Provider ${name} is no local server: POST /api/providers/${name}/test calls it`,
        )
      try {
        const { client } = await connections.open({ provider: name })
        return {
          available: true,
          models: [...(await entry.use(detectMs, async (inner) => (await client.models?.(inner)) ?? [], signal))],
        }
      } catch (error) {
        signal.throwIfAborted()
        // Refused, silent or something else on that port: there is no such server.
        if (error instanceof UpstreamFailure) return { available: false, models: [] }
        throw error
      }
    },
  })
  return [ollamaThere, there]
}
