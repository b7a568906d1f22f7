import * as v from 'valibot'
import { UpstreamFailure } from 'svc/sdk'
import { ApiClient, PublishedKeys } from 'svc/channels'
import type { ChannelLink } from 'svc/channels'
import type { TeamsConfig } from './config.ts'
import { Key, Keys, Metadata } from './wire.ts'

/** The channel of the Bot Framework whose messages are read. */
export const CHANNEL_ID = 'msteams'

/** The keys of the Bot Framework that may sign for Teams: it serves other channels too. */
export function signingKeys(link: ChannelLink<TeamsConfig>): PublishedKeys {
  const client = new ApiClient(link, { system: 'teams', refuseRedirects: true })
  const { metadata_url: metadata } = link.config
  return new PublishedKeys({
    now: () => link.now(),
    async read() {
      const { jwks_uri: url } = await client.json(metadata, {}, Metadata, 'its metadata')
      if (URL.parse(url)?.origin !== new URL(metadata).origin)
        throw new UpstreamFailure('teams', 'The metadata of Teams names keys at another place', {
          reason: 'malformed',
          retry: 'later',
        })
      const { keys } = await client.json(url, {}, Keys, 'its keys')
      return keys.flatMap((key) => (v.is(Key, key) && isForTeams(key) ? [key] : []))
    },
  })
}

function isForTeams({ endorsements }: v.InferOutput<typeof Key>): boolean {
  return endorsements == null || endorsements.includes(CHANNEL_ID)
}
