import * as v from 'valibot'
import { secret } from 'svc/sdk'

export const ThreemaConfig = v.object({
  token: secret(
    v.pipe(
      v.string(),
      v.regex(/^[\x21-\x7e]{1,256}$/, 'the API secret, without spaces'),
      v.description('The API secret of the id, which also signs what Threema sends.'),
    ),
  ),
  private_key: secret(
    v.pipe(
      v.string(),
      v.regex(/^(?:private:)?[0-9a-f]{64}$/i, 'a private key of 64 hexadecimal digits'),
      v.description('The private key of the id, 64 hexadecimal digits.'),
    ),
  ),
  threema_id: v.pipe(
    v.string(),
    v.regex(/^\*[A-Z0-9]{7}$/, 'an id such as *MYBOT01'),
    v.description('The id, which begins with an asterisk.'),
  ),
  base_url: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^https?:\/\//i, 'an http or https address'),
      v.description('The address of the Message API.'),
    ),
    'https://msgapi.threema.ch',
  ),
})
export type ThreemaConfig = v.InferOutput<typeof ThreemaConfig>
