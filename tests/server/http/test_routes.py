from .scripted import Script, serving


async def test_the_security_policy_of_pages_allows_nothing_from_other_hosts() -> None:
    async with serving(Script()) as client:
        for path in ("/", "/protocol"):
            response = await client.get(path)
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/html")
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert "style=" not in response.text


async def test_only_the_files_of_pages_need_no_token() -> None:
    async with serving(Script(), token="secret") as client:
        statuses = [
            (await client.get(path)).status_code for path in ("/playground/main.js", "/", "/metrics", "/health")
        ]
        told = (await client.get("/", params={"token": "secret"})).status_code
    assert (statuses, told) == ([200, 401, 401, 401], 200)
