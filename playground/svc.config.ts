/** `cd playground && npx svc dev`, then edit plugins/hello/index.ts and ask again. */
export default {
  plugins: { paths: ['./plugins'], watch: true, hello: { greeting: 'Hello' } },
}
