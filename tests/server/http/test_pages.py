from .scripted import Script, serving


async def test_pages_come_with_a_policy_that_lets_nothing_in_from_outside() -> None:
    async with serving(Script()) as client:
        for path in ("/", "/protocol"):
            response = await client.get(path)
            assert response.status_code == 200
            assert response.headers["content-type"].startswith("text/html")
            policy = response.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "unsafe" not in policy
            assert "http" not in policy
            assert "style=" not in response.text


async def test_the_playground_is_made_of_files_of_the_package() -> None:
    async with serving(Script()) as client:
        script = await client.get("/playground/main.js")
        missing = await client.get("/playground/../config.py")
    assert script.headers["content-type"].startswith("text/javascript")
    assert missing.status_code == 404


async def test_only_what_pages_are_made_of_needs_no_token() -> None:
    async with serving(Script(), token="secret") as client:
        statuses = [
            (await client.get(path)).status_code for path in ("/playground/main.js", "/", "/metrics", "/health")
        ]
        told = (await client.get("/", params={"token": "secret"})).status_code
    assert (statuses, told) == ([200, 401, 401, 401], 200)
