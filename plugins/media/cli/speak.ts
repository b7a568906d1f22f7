import { defineCommand } from 'svc/cli'
import { make, mediaArgs } from './client.ts'

export default defineCommand({
  description: 'Have a text read aloud into the workspace of an agent. It costs money.',
  args: {
    text: { type: 'positional', required: true, description: 'What is said' },
    voice: { type: 'string', valueHint: 'voice', description: 'A voice of the provider (default: the usual one)' },
    format: { type: 'string', valueHint: 'format', description: 'mp3, opus, aac, flac or wav (default: mp3)' },
    ...mediaArgs,
  },
  examples: [
    ['svc media speak "Good morning."', 'into an MP3 file'],
    ['svc media speak "$(cat speech.txt)" --voice nova --format wav', 'the text of a file'],
  ],
  run: (args) => make(args, 'speech', async () => ({ text: args.text, voice: args.voice, format: args.format })),
})
