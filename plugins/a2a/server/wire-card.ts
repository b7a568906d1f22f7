import type { AgentCard, SecurityScheme } from '@a2a-js/sdk'
import { HOP_COUNT, HOP_COUNT_TEXT } from '../hops.ts'
import type { CardFacts } from './cards.ts'

export const VERSIONS = ['1.0', '0.3'] as const

/** A card in the shape of protocol 1.0, from which the SDK makes that of 0.3. */
export function toAgentCard(facts: CardFacts): AgentCard {
  const { name, description, version, url, skills, pushNotifications, needsKey, inputModes, outputModes } = facts
  return {
    name,
    description,
    version,
    supportedInterfaces: VERSIONS.map((protocolVersion) => ({
      url,
      protocolBinding: 'JSONRPC',
      tenant: '',
      protocolVersion,
    })),
    provider: undefined,
    capabilities: { streaming: true, pushNotifications, extensions: [HOPS], extendedAgentCard: true },
    securitySchemes: needsKey ? { bearer: BEARER, apiKey: API_KEY } : {},
    securityRequirements: needsKey
      ? [{ schemes: { bearer: { list: [] } } }, { schemes: { apiKey: { list: [] } } }]
      : [],
    defaultInputModes: [...inputModes],
    defaultOutputModes: [...outputModes],
    skills: skills.map((skill) => ({ ...skill, inputModes: [], outputModes: [], securityRequirements: [] })),
    signatures: [],
  }
}

const HOPS = {
  uri: HOP_COUNT,
  description: HOP_COUNT_TEXT,
  required: false,
  params: undefined,
}
const BEARER: SecurityScheme = {
  scheme: {
    $case: 'httpAuthSecurityScheme',
    value: { description: 'The API key of the daemon', scheme: 'bearer', bearerFormat: '' },
  },
}
const API_KEY: SecurityScheme = {
  scheme: {
    $case: 'apiKeySecurityScheme',
    value: { description: 'The API key of the daemon', location: 'header', name: 'X-API-Key' },
  },
}
