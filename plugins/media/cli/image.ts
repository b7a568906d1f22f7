import { defineCommand, exits, Failure } from 'svc/cli'
import { make, mediaArgs } from './client.ts'

export default defineCommand({
  description: 'Have pictures made into the workspace of an agent. It costs money.',
  args: {
    prompt: { type: 'positional', required: true, description: 'What the pictures show' },
    count: { type: 'string', valueHint: 'number', description: 'How many (default: 1)' },
    size: { type: 'string', valueHint: 'size', description: 'In the words of the provider, such as 1536x1024' },
    quality: { type: 'string', valueHint: 'quality', description: 'In its words, such as low' },
    model: { type: 'string', valueHint: 'model', description: 'A model of the provider, or provider/model' },
    ...mediaArgs,
  },
  examples: [
    ['svc media image "A red kite over the sea" --quality low', 'for the agent "assistant"'],
    ['svc media image "A logo" --agent painter --count 3', 'three pictures for another one'],
  ],
  async run(args) {
    const { prompt, size, quality, model } = args
    const count = args.count === undefined ? undefined : Number(args.count)
    if (count !== undefined && !Number.isInteger(count))
      throw new Failure(exits.usage, `--count: "${args.count}" is not a whole number`)
    return make(args, 'images', async () => ({ prompt, count, size, quality, model }))
  },
})
