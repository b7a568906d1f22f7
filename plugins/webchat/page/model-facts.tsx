import './model-facts.css'
import type { Model } from './wire.ts'

const count = new Intl.NumberFormat('en', { notation: 'compact' })
const dollars = new Intl.NumberFormat('en', { style: 'currency', currency: 'USD', maximumFractionDigits: 3 })

/** What a model costs and can do, on one line. */
export function ModelFacts({ model }: { readonly model: Model }) {
  const abilities = [
    model.supports_tools && 'tools',
    model.supports_vision && 'images',
    model.supports_thinking && 'reasoning',
  ].filter((ability) => ability !== false)
  return (
    <span class="model-facts">
      <span>{describePrice(model)}</span>
      <span>{count.format(model.context_window)} tokens</span>
      {abilities.map((ability) => (
        <span key={ability} class="ability">
          {ability}
        </span>
      ))}
    </span>
  )
}

function describePrice({ pricing_known: known, input_cost_per_1m: input, output_cost_per_1m: output }: Model): string {
  if (!known) return 'price unknown'
  if (input === 0 && output === 0) return 'free'
  return `${dollars.format(input)} in, ${dollars.format(output)} out per million`
}
