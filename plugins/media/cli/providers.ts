import * as v from 'valibot'
import {
  callDaemon,
  clientArgs,
  connect,
  defineCommand,
  escapeControls,
  exits,
  print,
  printJson,
  renderTable,
} from 'svc/cli'

const name = v.nullable(v.string())
const Listing = v.looseObject({
  providers: v.array(v.looseObject({ provider: v.string(), images: name, speech: name, transcription: name })),
})

export default defineCommand({
  description: 'List who makes pictures, speech and transcriptions: the providers that have their key.',
  args: clientArgs,
  examples: [['svc media', 'with the usual model of each']],
  async run(args) {
    const listing = await callDaemon(await connect(args), (client) =>
      client.call('GET', '/api/media/providers', Listing),
    )
    if (args.json) printJson(listing)
    else if (listing.providers.length === 0) print('No provider with a key makes pictures, speech or transcriptions.')
    else
      print(
        renderTable(
          ['PROVIDER', 'IMAGES', 'SPEECH', 'TRANSCRIPTION'],
          listing.providers.map(({ provider, images, speech, transcription }) =>
            [provider, images ?? '', speech ?? '', transcription ?? ''].map((each) => escapeControls(each)),
          ),
        ),
      )
    return exits.ok
  },
})
