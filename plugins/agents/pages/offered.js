import { call, count, money } from '../../kit/kit.js'

/**
 * What a manifest may name: the tools, providers and models of this daemon. A daemon may run without the plugin that has
 * one of the lists; every name can be typed all the same.
 */
export async function readOffered() {
  const [{ details: tools = [] }, { providers = [] }, { models = [] }, usual] = await Promise.all([
    orNothing('/api/tools?details=true'),
    orNothing('/api/providers'),
    orNothing('/api/models?available=true'),
    orNothing('/api/config/provider'),
  ])
  return { tools, providers: providerOptions(providers, usual), models: modelOptions(models, usual) }
}

async function orNothing(path) {
  try {
    return await call('GET', path)
  } catch (error) {
    if (error.status === 404) return {}
    throw error
  }
}

const isReady = ({ auth_status: status }) => status === 'configured' || status === 'no_key_needed'

function providerOptions(providers, { provider }) {
  const sorted = providers.toSorted((one, other) => Number(isReady(other)) - Number(isReady(one)))
  return [
    { value: 'default', title: 'default', facts: [provider ? `now ${provider}` : 'the one of the daemon'] },
    ...sorted.map((one) => ({
      value: one.name,
      title: one.display_name,
      facts: [isReady(one) ? 'ready' : 'no key', `${count(one.model_count)} models`],
    })),
  ]
}

function modelOptions(models, { provider, model }) {
  return [
    { value: 'default', title: 'default', facts: [model ? `now ${provider}/${model}` : 'the one of the daemon'] },
    ...models.map((one) => ({
      value: one.id,
      title: `${one.provider}/${one.id}`,
      provider: one.provider,
      facts: factsOf(one),
    })),
  ]
}

const tokens = new Intl.NumberFormat('en', { notation: 'compact' })
function factsOf(model) {
  const { context_window: window, supports_tools: tools, supports_vision: vision, supports_thinking: thinking } = model
  return [
    priceOf(model),
    `${tokens.format(window)} tokens`,
    tools && 'tools',
    vision && 'images',
    thinking && 'reasoning',
  ].filter(Boolean)
}

function priceOf({ pricing_known: isKnown, input_cost_per_1m: input, output_cost_per_1m: output }) {
  if (!isKnown) return 'price unknown'
  return input === 0 && output === 0 ? 'free' : `${money(input)} in, ${money(output)} out per million`
}
