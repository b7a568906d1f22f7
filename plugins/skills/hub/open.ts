import type { Fetch } from 'svc/sdk'
import type { Settings } from '../config.ts'
import { HubClient } from './client.ts'
import { ClawHub } from './clawhub.ts'
import { Marketplace } from './marketplace.ts'

export interface Hubs {
  readonly clawhub: ClawHub
  readonly marketplace: Marketplace
}

export function openHubs(fetch: Fetch, settings: Settings): Hubs {
  const client = (name: string, base: string, headers = {}): HubClient =>
    new HubClient({ fetch, name, base: base.replace(/\/+$/, ''), headers, cacheSecs: settings.hub_cache_secs })
  const { max_archive_bytes: maxBytes, marketplace_url: marketplace } = settings
  return {
    clawhub: new ClawHub(client('ClawHub', settings.clawhub_url), maxBytes),
    marketplace: new Marketplace(
      client('The marketplace', marketplace, { accept: 'application/vnd.github+json' }),
      settings.marketplace_query,
      maxBytes,
    ),
  }
}
