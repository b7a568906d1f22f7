import { expect, it } from 'vitest'
import { authorityTable } from '../support/authority-table.ts'
import { startHost } from '../support/host.ts'

it('docs/authority.md says of every route who may call it', async () => {
  await using host = await startHost({
    listen: false,
    config: {
      api_key: 'a-key-for-this-test',
      pairing: { enabled: true },
      external_auth: {
        enabled: true,
        issuer_url: 'https://accounts.example.org',
        client_id: 'svc',
        client_secret: 'a secret',
        allowed_domains: ['example.org'],
      },
    },
  })
  await expect(authorityTable(host.app.routes(), host.app.sockets())).toMatchFileSnapshot('../../docs/authority.md')
})
