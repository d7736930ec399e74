// Questions to the server. What it refuses is thrown as an Error with `code` and `hint`.

async function answered(response) {
  const body = await response.json().catch(() => ({ message: "The server's answer cannot be read.", hint: "Is `memlane ui` still running?" }));
  if (response.ok) return body;
  throw Object.assign(new Error(body.message), { code: body.code, hint: body.hint, status: response.status });
}

const gone = () => {
  throw Object.assign(new Error("The server does not answer."), { code: "gone", hint: "Start `memlane ui` again, and open the address that it prints." });
};

export function get(name, asked = {}, signal) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(asked)) for (const each of [value].flat()) if (each !== undefined && each !== "") query.append(key, each);
  const refused = (error) => (error.name === "AbortError" ? Promise.reject(error) : gone());
  return fetch(`/api/${name}?${query}`, { signal }).catch(refused).then(answered);
}

export function post(name, asked = {}) {
  return fetch(`/api/${name}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(asked) }).catch(gone).then(answered);
}
