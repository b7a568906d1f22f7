import * as v from 'valibot'
import { fields, fileOnly, secret } from 'svc/sdk'

const address = (description: string, fallback: string) =>
  v.optional(
    v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//i, 'an http or https address'), v.description(description)),
    fallback,
  )
const guid = (description: string) =>
  v.pipe(v.string(), v.regex(/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i, 'a GUID'), v.description(description))

export const TeamsConfig = v.object({
  token: secret(
    v.pipe(v.string(), v.minLength(1), v.maxLength(4096), v.description('The value of the client secret of the bot.')),
  ),
  app_id: guid('The Microsoft App ID of the bot.'),
  tenant_id: v.optional(guid('The App Tenant ID of the bot; absent for one of several tenants.')),
  allowed_tenants: fields.texts(
    'Ids of the tenants whose messages are read. When empty, the one of the bot; all for a bot of several tenants.',
  ),
  base_url: address('The Bot Connector, for chats in which nobody wrote yet.', 'https://smba.trafficmanager.net/teams'),
  login_url: address('Where access tokens are issued.', 'https://login.microsoftonline.com'),
  metadata_url: address(
    'The metadata of those who sign the messages of Teams.',
    'https://login.botframework.com/v1/.well-known/openidconfiguration',
  ),
  service_hosts: fileOnly(
    'they are sent the access token',
    fields.texts('More hosts of the Bot Connector, beside those of Teams: they are sent the access token.'),
  ),
})
export type TeamsConfig = v.InferOutput<typeof TeamsConfig>
