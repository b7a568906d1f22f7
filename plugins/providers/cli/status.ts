import type { StatusLines } from 'svc/cli'

const lines: StatusLines = ({ default_provider: provider, default_model: model }) => {
  const name = typeof provider === 'string' && provider !== '' ? provider : 'found by itself'
  return [['model', typeof model === 'string' && model !== '' ? `${name} / ${model}` : name]]
}
export default lines
